package cli

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// clientSnapshot is what a client release ships, in the form that the registry reads.
type clientSnapshot struct {
	dialect  dialect.Dialect
	release  string // "" when the source does not say it
	document []byte
}

// readSnapshot reads what the arguments [DIALECT] PATH name: a folder or a wheel of an installed client, or a snapshot.
func readSnapshot(args []string) (clientSnapshot, error) {
	var d dialect.Dialect
	file := args[len(args)-1]
	if len(args) == 2 {
		var err error
		if d, err = dialect.Parse(args[0]); err != nil {
			return clientSnapshot{}, usageError{err}
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		return clientSnapshot{}, err
	}
	if info.IsDir() {
		return folderSnapshot(file, d)
	}
	if wheel, err := isZip(file); err != nil || wheel {
		if err != nil {
			return clientSnapshot{}, err
		}
		return wheelSnapshot(file, d)
	}
	if d == "" {
		return clientSnapshot{}, usagef("%s is no wheel: of a snapshot the dialect is asked for: sf admin catalog import forge|tuneplane %[1]s", file)
	}
	document, err := readFile(file, limit.JSONBody+1)
	return clientSnapshot{dialect: d, document: document}, err
}

// folderSnapshot reads a site-packages folder, or the virtual environment that has one.
func folderSnapshot(folder string, d dialect.Dialect) (clientSnapshot, error) {
	for _, below := range []string{filepath.Join(folder, "lib", "python3*", "site-packages"), filepath.Join(folder, "Lib", "site-packages")} {
		found, err := filepath.Glob(below)
		if err != nil {
			return clientSnapshot{}, err
		}
		if len(found) > 0 {
			folder = found[len(found)-1]
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return clientSnapshot{}, err
	}
	defer root.Close()
	return packageSnapshot(root.FS(), d)
}

func wheelSnapshot(file string, d dialect.Dialect) (clientSnapshot, error) {
	wheel, err := zip.OpenReader(file)
	if err != nil {
		return clientSnapshot{}, err
	}
	s, err := packageSnapshot(wheel, d)
	return s, errors.Join(err, wheel.Close())
}

func packageSnapshot(fsys fs.FS, d dialect.Dialect) (clientSnapshot, error) {
	all, err := catalogue.ReadPackage(fsys, d)
	if err != nil {
		return clientSnapshot{}, err
	}
	document, err := all.Encode()
	return clientSnapshot{all.Dialect(), all.Release(), document}, err
}

// isZip looks at how a file begins.
func isZip(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := f.Read(head) // a file that can't be read is no wheel, and is read again
	return bytes.Equal(head[:n], []byte("PK\x03\x04")), nil
}
