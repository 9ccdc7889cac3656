package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// The test program is also the command that the scripts run, and the stage of its launches.
func TestMain(m *testing.M) {
	if handled, code := launchverify.Stage(os.Args[1:]); handled {
		os.Exit(code)
	}
	if os.Getenv(asCommand) != "" {
		if err := limitFiles(); err != nil {
			panic(err)
		}
		os.Exit(Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
		"sf": func() { os.Exit(Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// asCommand makes the test program be sf, whatever it is called.
const asCommand = "GATEHOUSE_TEST_AS_SF"

// Each script has a server of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": jsonValue, "stdout2env": stdoutToEnv, "flip": flip, "orascopy": orasCopy, "stop-server": stopServer,
			"fill": fill, "noise": noise, "tls-server": tlsServer, "kill-launches": killLaunches,
		},
	})
}

// setUp starts a server and says in the environment where it is, where its data and our packs lie, and what its
// administrator's token is.
func setUp(env *testscript.Env) error {
	data := filepath.Join(env.WorkDir, ".data")
	s, stop, err := servertest.Run(data)
	if err != nil {
		return err
	}
	env.Defer(func() {
		if err := stop(); err != nil {
			env.T().Fatal(err)
		}
	})
	env.Values["stop"] = stop
	packs, err := filepath.Abs("../testdata/packs")
	if err != nil {
		return err
	}
	vectors, err := filepath.Abs("../testdata/vectors")
	env.Vars = append(env.Vars, "SERVER="+s.URL, "HOST="+strings.TrimPrefix(s.URL, "http://"), "ADMIN_TOKEN="+s.Token,
		"DATA="+data, "PACKS="+packs, "VECTORS="+vectors, "GATEHOUSE_HOME="+filepath.Join(env.WorkDir, ".home"))
	return err
}

// stop-server ends the script's server.
func stopServer(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Value("stop").(func() error)())
}

// tls-server starts a further server, one with TLS, and says in TLS_SERVER, TLS_ADMIN_TOKEN and TLS_CA where it is, what its
// administrator's token is, and which certificate to trust.
func tlsServer(ts *testscript.TestScript, _ bool, _ []string) {
	s, authority, stop, err := servertest.RunTLS(filepath.Join(ts.Getenv("WORK"), ".tls-data"))
	ts.Check(err)
	ts.Defer(func() { ts.Check(stop()) })
	ts.Setenv("TLS_SERVER", s.URL)
	ts.Setenv("TLS_ADMIN_TOKEN", s.Token)
	ts.Setenv("TLS_CA", authority)
}

// exits CODE COMMAND [ARG...] runs a command and compares its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// stdout2env NAME keeps the last output in a variable.
func stdoutToEnv(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: stdout2env NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// json FILE PATH REGEXP compares the value at a path such as violations.0.rule. With ! the path must not exist. With
// ->NAME in place of the expression the value goes into a variable.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || !neg && len(args) != 3 {
		ts.Fatalf("usage: [!] json FILE PATH [REGEXP|->NAME]")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s: %v\n%s", args[0], err, ts.ReadFile(args[0]))
	}
	value, ok := at(doc, args[1])
	if neg {
		if ok {
			ts.Fatalf("%s: %s is there: %v", args[0], args[1], value)
		}
		return
	}
	if !ok {
		ts.Fatalf("%s has no %s:\n%s", args[0], args[1], ts.ReadFile(args[0]))
	}
	if name, capture := strings.CutPrefix(args[2], "->"); capture {
		ts.Setenv(name, fmt.Sprint(value))
		return
	}
	if !regexp.MustCompile(args[2]).MatchString(fmt.Sprint(value)) {
		ts.Fatalf("%s: %s is %v, want %s", args[0], args[1], value, args[2])
	}
}

func at(doc any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// flip FILE changes one byte of a file. Of a digest it changes the stored blob.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: flip FILE|DIGEST")
	}
	path := ts.MkAbs(args[0])
	if hex, isDigest := strings.CutPrefix(args[0], "sha256:"); isDigest {
		path = ""
		ts.Check(filepath.WalkDir(filepath.Join(ts.Getenv("DATA"), "blobs"), func(p string, _ os.DirEntry, err error) error {
			if filepath.Base(p) == hex {
				path = p
			}
			return err
		}))
		if path == "" {
			ts.Fatalf("no blob %s", args[0])
		}
		ts.Check(os.Chmod(path, 0o600))
	}
	content, err := os.ReadFile(path)
	ts.Check(err)
	content[len(content)/2] ^= 1
	ts.Check(os.WriteFile(path, content, 0o600))
}

// fill FILE puts the values of variables in place of ${NAME} in a file.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// noise FILE makes a file that no archive makes smaller, and that is too large to be kept beside its row.
func noise(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: noise FILE")
	}
	content := make([]byte, 100<<10)
	rand.NewChaCha8([32]byte{1}).Read(content)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o644))
}

// orascopy LAYOUT TAG REPOSITORY TOKEN publishes from an OCI layout as any OCI client would, by oras-go alone.
func orasCopy(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: [!] orascopy LAYOUT TAG REPOSITORY TOKEN")
	}
	ctx := context.Background()
	from, err := oci.NewFromFS(ctx, os.DirFS(ts.MkAbs(args[0])))
	ts.Check(err)
	to, err := remote.NewRepository(args[2])
	ts.Check(err)
	account, _, _ := strings.Cut(to.Reference.Repository, "/")
	to.PlainHTTP = true
	to.Client = &auth.Client{Credential: auth.StaticCredential(to.Reference.Host(), auth.Credential{Username: account, Password: args[3]})}
	d, err := oras.Copy(ctx, from, args[1], to, args[1], oras.DefaultCopyOptions)
	if neg {
		if err == nil {
			ts.Fatalf("copied %s", d.Digest)
		}
		ts.Logf("%v", err)
		return
	}
	ts.Check(err)
	ts.Setenv("COPIED", d.Digest.String())
}
