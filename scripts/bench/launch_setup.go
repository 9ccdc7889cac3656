package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// account is whom a launch belongs to.
type account struct {
	name       string
	credential *syscall.Credential // nil: this process's own
}

// nobody is the ordinary user that root measures beside itself.
const nobody = 65534

// accounts are this process's own and, as root, an ordinary user's.
func accounts() []account {
	if os.Geteuid() != 0 {
		return []account{{name: "user"}}
	}
	return []account{{name: "root"}, {name: "user", credential: &syscall.Credential{Uid: nobody, Gid: nobody}}}
}

// node is a machine that launches jobs: a registry, the program, and the folders of one account.
type node struct {
	account
	sf       string
	registry *server
	folder   string // the account's own
	trust    string // file of the registry's keys
}

// newNode makes an account's folders. Others must be able to reach what lies above them.
func newNode(sf, folder string, a account, s *server) (node, error) {
	n := node{account: a, sf: sf, registry: s, folder: filepath.Join(folder, a.name)}
	n.trust = n.folder + ".trust.json"
	if err := os.Mkdir(n.folder, 0o755); err != nil {
		return n, err
	}
	if a.credential != nil {
		if err := os.Chown(n.folder, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return n, err
		}
	}
	return n, onLink(s, func(l *link) error {
		keys, err := l.do("GET", "/api/trust", "", nil, 200, true)
		if err != nil {
			return err
		}
		return os.WriteFile(n.trust, keys.body, 0o644)
	})
}

// shape is what the plugins of a job look like. The bytes of each don't compress, and are divided over its files.
type shape struct {
	name  string
	packs int
	files int     // of a pack, besides its manifest and module
	bytes int64   // of a pack
	asked float64 // the part of the formula that a launch may take
}

// launchJob is an admitted job in its directory.
type launchJob struct {
	dir   string
	bytes int64 // of its plugins' files
}

// admit publishes plugins of a shape and submits a job that names them. The job's directory holds what a platform would put
// there: the spec as it was stored, the plugins, an experiment, and beside it the receipt.
func (n node) admit(s shape) (j launchJob, err error) {
	recipe, err := plainRecipe()
	if err != nil {
		return j, err
	}
	j.dir = filepath.Join(n.folder, fmt.Sprintf("job-%d", made.Add(1)))
	var plugins []string
	err = onLink(n.registry, func(l *link) error {
		for range s.packs {
			name := fmt.Sprintf("weights%d", made.Add(1))
			files := s.pack(name)
			d, err := l.publish(files)
			if err != nil {
				return err
			}
			plugins = append(plugins, fmt.Sprintf(`{"id":"admin/%s","version":"1","digest":%q}`, name, d))
			for file, content := range files {
				j.bytes += int64(len(content))
				if err := writeBelow(j.dir, filepath.Join("forge_plugins", name, file), []byte(content)); err != nil {
					return err
				}
			}
		}
		return j.submit(l, specOf(recipe, plugins))
	})
	return j, errors.Join(err, n.own(j.dir))
}

// pack is one plugin's files.
func (s shape) pack(name string) map[string]string {
	files := map[string]string{
		"plugin.yaml":    fmt.Sprintf("schema: forge/plugin/v1\nname: %s\nversion: \"1\"\nkind: algorithm\nentrypoint: bench_%s:install\n", name, name),
		name + ".readme": "weights\n", "bench_" + name + ".py": "def install(params, **context):\n    pass\n",
	}
	content := string(fresh(s.bytes))
	for i := range s.files {
		from, to := s.bytes*int64(i)/int64(s.files), s.bytes*int64(i+1)/int64(s.files)
		files[fmt.Sprintf("data/%03d/%06d.bin", i/256, i)] = content[from:to]
	}
	return files
}

// submit has the job admitted and fetches its spec and receipt.
func (j launchJob) submit(l *link, spec []byte) error {
	a, err := l.do("POST", durablePath, "application/json", spec, 200, true)
	if err != nil {
		return err
	}
	var admitted struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal(a.body, &admitted); err != nil {
		return err
	}
	stored, err := l.do("GET", durablePath+"/"+admitted.ID+"/spec", "", nil, 200, true)
	if err != nil {
		return err
	}
	signed, err := l.do("GET", durablePath+"/"+admitted.ID+"/receipt", "", nil, 200, true)
	if err != nil {
		return err
	}
	return errors.Join(
		writeBelow(j.dir, ".starforge/jobspec.json", stored.body),
		writeBelow(j.dir, "experiments/demo/train.sh", []byte("exit 0\n")),
		os.WriteFile(j.dir+receipt.Suffix, signed.body, 0o644),
	)
}

func writeBelow(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// own gives a tree to the account.
func (n node) own(dir string) error {
	if n.credential == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(n.credential.Uid), int(n.credential.Gid))
	})
}

// cache is where the account's packs lie.
func (n node) cache() string { return filepath.Join(n.folder, "cache") }

// command is sf as the account, with what a node is set up with.
func (n node) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.sf, args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + n.folder, "GATEHOUSE_HOME=" + filepath.Join(n.folder, "home"), "GATEHOUSE_CACHE=" + n.cache(),
		"GATEHOUSE_SERVER=http://" + n.registry.address, "GATEHOUSE_TOKEN=" + n.registry.secret,
	}
	if n.credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: n.credential}
	}
	return cmd
}

// launch is `sf launch` of a job.
func (n node) launch(j launchJob, command ...string) *exec.Cmd {
	args := []string{"launch", "--jobspec", filepath.Join(j.dir, ".starforge", "jobspec.json"), "--trust", n.trust, "--"}
	return n.command(append(args, command...)...)
}

// spent is what a program took.
type spent struct {
	wall      time.Duration
	processor time.Duration // its own and that of everything it waited for
}

// timed runs a program to its end, which must be a good one.
func timed(cmd *exec.Cmd) (spent, error) {
	var said strings.Builder
	cmd.Stderr = &said
	start := time.Now()
	err := cmd.Run()
	s := spent{wall: time.Since(start)}
	if err != nil {
		return s, fmt.Errorf("%s: %w: %.2000s", strings.Join(cmd.Args, " "), err, said.String())
	}
	s.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, nil
}

// floor reads and hashes every file of the job's plugins once, on one core: the least that proving them can cost. The bytes are
// those that lie in the node's cache, of the same file system.
func (j launchJob) floor() (time.Duration, error) {
	var total int64
	buf := make([]byte, 256<<10)
	h := sha256.New()
	start := time.Now()
	err := filepath.WalkDir(filepath.Join(j.dir, "forge_plugins"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h.Reset()
		read, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf)
		total += read
		return err
	})
	took := time.Since(start)
	if err == nil && total != j.bytes {
		err = fmt.Errorf("%s has %d bytes, published were %d", j.dir, total, j.bytes)
	}
	return took, err
}
