package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// pushFlags are the flags of every verb that pushes a suite.
type pushFlags struct {
	name, version string
	public        bool
}

func (f *pushFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.name, "name", "n", "", "OWNER/NAME, or a name of your own")
	cmd.Flags().StringVarP(&f.version, "version", "v", "", "the version, which never changes")
	cmd.Flags().BoolVar(&f.public, "public", false, "every account may read it; counts only for the first version")
}

// check asks for what every push needs.
func (f *pushFlags) check() error {
	if f.name == "" || f.version == "" {
		return usageError{errors.New("--name and --version are needed: --name web-shop --version v1")}
	}
	return nil
}

// environmentPush checks a folder and pushes it.
func (a app) environmentPush() *cobra.Command {
	var flags pushFlags
	cmd := &cobra.Command{
		Use: "push DIR --name NAME --version VERSION [--public]", Short: "Check an environment and push a version of it, for good", Args: cobra.ExactArgs(1),
		Long: `Check the manifest.json and tasks.jsonl of DIR by the rules of the dialect that the manifest names, then push every file
below DIR as a version. The server applies the same rules again. Pushing a version a second time is a conflict (exit 6).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			d, report, err := checkEnvironment(root)
			if err != nil {
				return err
			}
			if !report.OK() {
				return refusedSuite(suite.Environment, flags.name, flags.version, d, report)
			}
			a.env.printWarnings(report)
			files, err := filesBelow(root)
			if err != nil {
				return err
			}
			return a.pushSuite(cmd.Context(), root, suite.Environment, flags, files)
		},
	}
	flags.add(cmd)
	return cmd
}

// checkEnvironment judges the documents of a folder as the server will.
func checkEnvironment(root *os.Root) (dialect.Dialect, rule.Report, error) {
	lacks := func(file string, d dialect.Dialect) rule.Report {
		r := rule.Report{Dialect: d}
		r.Add(rule.Violation{Rule: "environment.files", File: file, Message: "the folder has no file " + file})
		return r
	}
	src, err := readDocument(root, suite.ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", lacks(suite.ManifestFile, ""), nil
	}
	if err != nil {
		return "", rule.Report{}, err
	}
	m, report := suite.ParseManifest(src, suite.ManifestOptions{})
	if m == nil || !m.NeedsTasks() {
		return report.Dialect, report, nil
	}
	file, err := root.Open(suite.TasksFile)
	if errors.Is(err, fs.ErrNotExist) {
		report.Merge(lacks(suite.TasksFile, m.Dialect))
		return m.Dialect, report, nil
	}
	if err != nil {
		return m.Dialect, report, err
	}
	defer file.Close()
	_, more, err := suite.ReadTasks(file, suite.TaskOptions{}, nil)
	report.Merge(more)
	return m.Dialect, report, err
}

// readDocument reads a small file, and no more than a byte beyond what its reader takes.
func readDocument(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit.Document+1))
}

// printWarnings shows what does not refuse.
func (e *Env) printWarnings(report rule.Report) {
	for _, w := range report.Warnings {
		fmt.Fprintf(e.Err, "sf: warning: %s\n", printable(w.String()))
	}
}

// filesBelow lists every file below a folder. Links count as the files they lead to, which must lie in the folder.
func filesBelow(root *os.Root) ([]string, error) {
	var names []string
	err := fs.WalkDir(root.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := root.Stat(at)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		case !info.Mode().IsRegular():
			return usageError{fmt.Errorf("%s is no regular file: remove it, or push a folder without it", at)}
		case at == suite.IndexFile:
			return usageError{fmt.Errorf("%s: the name is kept for the list of files that a push writes", at)}
		}
		names = append(names, at)
		if len(names) > limit.SuiteFiles {
			return usageError{fmt.Errorf("the folder has more than %d files, the most that a version may have", limit.SuiteFiles)}
		}
		return nil
	})
	return names, err
}

// pushAtOnce is how many files are on their way at a time.
const pushAtOnce = 8

// pushSuite uploads files, the largest first, and seals the version.
func (a app) pushSuite(ctx context.Context, root *os.Root, kind suite.Kind, flags pushFlags, names []string) error {
	c, _, err := a.env.client()
	if err != nil {
		return err
	}
	index, err := indexFiles(root, names)
	if err != nil {
		return err
	}
	u := client.SuiteUpload{Kind: kind, Name: flags.name, Version: flags.version, Public: flags.public}
	bar := a.env.transfer("push", index.Bytes())
	err = uploadFiles(ctx, c, u, root, index, bar)
	bar.end()
	if err != nil {
		return err
	}
	text, err := encodeIndex(index)
	if err != nil {
		return err
	}
	named, err := c.PutSuiteFile(ctx, u, suite.IndexFile, int64(len(text)), func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	})
	if err != nil {
		return err
	}
	made, err := c.Suite(ctx, kind, named, flags.version)
	if err != nil {
		return fmt.Errorf("%s@%s is pushed, but: %w", named, flags.version, err)
	}
	if a.opt.json {
		return a.env.writeJSON(made)
	}
	_, err = fmt.Fprintf(a.env.Out, "pushed %s@%s (%d files, %s)\n   tree     %s\n   manifest %s\n", printable(made.ID), printable(made.Version), len(made.Files), printable(made.Visibility), printable(made.Digest), printable(made.ManifestDigest))
	return err
}

// indexFiles reads every file once for its size and digest, and refuses names that no version may have.
func indexFiles(root *os.Root, names []string) (suite.Index, error) {
	index := make(suite.Index, 0, len(names))
	for _, name := range names {
		if faults := suite.CheckFileName(name); len(faults) > 0 {
			return nil, usageError{errors.New(faults[0].String())}
		}
		f, err := suite.HashFile(root, name)
		if err != nil {
			return nil, err
		}
		index = append(index, f)
	}
	slices.SortFunc(index, func(a, b suite.File) int { return cmp.Compare(a.Name, b.Name) })
	return index, nil
}

// encodeIndex writes the index as the real clients do.
func encodeIndex(index suite.Index) ([]byte, error) {
	rows := make([]wire.SuiteFile, len(index))
	for i, f := range index {
		rows[i] = wire.SuiteFile{Name: f.Name, Size: f.Size, SHA256: f.Digest.Hex()}
	}
	return json.Marshal(map[string]any{"files": rows})
}

// uploadFiles sends the files. The first failure ends it: the version is not sealed, and the same command goes on.
func uploadFiles(ctx context.Context, c *client.Client, u client.SuiteUpload, root *os.Root, index suite.Index, bar *transfer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := slices.SortedFunc(slices.Values(index), func(a, b suite.File) int { return cmp.Compare(b.Size, a.Size) })
	next := make(chan suite.File)
	var workers sync.WaitGroup
	for range pushAtOnce {
		workers.Go(func() {
			for f := range next {
				_, err := c.PutSuiteFile(ctx, u, f.Name, f.Size, func() (io.ReadCloser, error) {
					file, err := root.Open(f.Name)
					if err != nil {
						return nil, err
					}
					return struct {
						io.Reader
						io.Closer
					}{&countingReader{file, bar}, file}, nil
				})
				if err != nil {
					cancel(fmt.Errorf("%s: %w", f.Name, err))
				}
			}
		})
	}
	for _, f := range todo {
		if ctx.Err() != nil {
			break
		}
		next <- f
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
