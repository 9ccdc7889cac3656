package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// How many publishes the server is killed in; GATEHOUSE_CRASH_PUBLISHES sets another number.
const (
	crashPublishes      = 200
	crashPublishesShort = 50
	crashTogether       = 4 // publishes at a time, by both routes
)

// publishSeconds bounds the wait for a server that starts, or for one publish.
const publishSeconds = 30

// attempt is one publish and what became of it.
type attempt struct {
	art   *artifact
	rest  bool // over REST instead of OCI
	acked bool // the server answered 2xx
}

func (a *attempt) ref() name.Ref {
	m := a.art.pack.Manifest
	return name.Ref{Owner: registry.AdminAccount, Name: m.Name, Version: m.Version}
}

// crash is a registry that is killed again and again.
type crash struct {
	t      *testing.T
	data   string
	random *rand.Rand
	cmd    *exec.Cmd
	client *client.Client
	token  string
}

// The server is killed with SIGKILL at random moments while versions are published. After each restart every version is
// wholly there or wholly absent; what was acknowledged is there with the digests that were published; what is absent
// can be published again.
func TestKilledServer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &crash{t: t, data: filepath.Join(t.TempDir(), "data"), random: rand.New(rand.NewPCG(seed, 1))}
	t.Cleanup(c.kill)
	c.start()
	var all []*attempt
	whole := c.timeOf(c.makeAttempts(0))
	kills, acked := 0, 0
	for n := publishesToKill(t); len(all) < n; kills++ {
		batch := c.makeAttempts(len(all) + crashTogether)
		c.publishAndKill(batch, time.Duration(c.random.Int64N(int64(whole)*5/4+1)))
		all = append(all, batch...)
		c.start()
		for _, a := range batch {
			c.settled(a)
		}
	}
	there := 0
	for _, a := range all {
		if c.settled(a) {
			there++
		}
		if a.acked {
			acked++
		}
	}
	c.ledgerHolds(all)
	for _, a := range all {
		if err := c.publish(a); err != nil && registry.CodeOf(err).Meaning().Exit != exitConflict {
			t.Errorf("%s can't be published after the crash: %v", a.ref(), err)
		}
		if !c.settled(a) {
			t.Errorf("%s is absent after it was published again", a.ref())
		}
	}
	t.Logf("%d publishes, %d kills: %d acknowledged, %d more whole without an answer, %d absent", len(all), kills, acked, there-acked, len(all)-there)
	if acked == 0 || there == len(all) {
		t.Errorf("the kills came too late or too early to mean anything")
	}
}

func publishesToKill(t *testing.T) int {
	if text := os.Getenv("GATEHOUSE_CRASH_PUBLISHES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("GATEHOUSE_CRASH_PUBLISHES=%q is no number of publishes", text)
		}
		return n
	}
	if testing.Short() {
		return crashPublishesShort
	}
	return crashPublishes
}

// start starts the server on what the last one left, and waits until it answers.
func (c *crash) start() {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	address := filepath.Join(c.data, server.AddressFile)
	if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) { // a killed server leaves it
		c.t.Fatal(err)
	}
	var log bytes.Buffer
	c.cmd = exec.Command(self, "serve", "--data", c.data, "--listen", "127.0.0.1:0")
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), asCommand+"=1"), &log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	for deadline := time.Now().Add(publishSeconds * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if text, err := os.ReadFile(address); err == nil {
			c.connect(strings.TrimSpace(string(text)))
			return
		}
		if time.Now().After(deadline) {
			c.kill()
			c.t.Fatalf("the server does not start:\n%s", log.String())
		}
	}
}

func (c *crash) connect(address string) {
	c.t.Helper()
	token, err := os.ReadFile(filepath.Join(c.data, server.AdminTokenFile))
	if err != nil {
		c.t.Fatal(err)
	}
	c.token = strings.TrimSpace(string(token))
	c.client, err = client.New(client.Options{Server: address, Account: registry.AdminAccount, Token: c.token, UserAgent: "crash-test"})
	if err != nil {
		c.t.Fatal(err)
	}
}

// kill ends the server as a power cut would, as far as a process can tell.
func (c *crash) kill() {
	if c.cmd == nil {
		return
	}
	c.cmd.Process.Kill() // it may have ended by itself, which the next start shows
	c.cmd.Wait()
	c.cmd = nil
}

// makeAttempts makes packs that nobody has published, with some bytes of their own to write.
func (c *crash) makeAttempts(from int) []*attempt {
	c.t.Helper()
	batch := make([]*attempt, crashTogether)
	for i := range batch {
		n := from + i
		dir := filepath.Join(c.t.TempDir(), "pack")
		noise := make([]byte, 1+c.random.IntN(256<<10))
		for j := range noise {
			noise[j] = byte(c.random.Uint32())
		}
		for file, content := range map[string][]byte{
			"plugin.yaml":    fmt.Appendf(nil, "schema: forge/plugin/v1\nname: crash-%d\nversion: \"1.%d\"\nkind: algorithm\nentrypoint: crash_patch:install\n", n%7, n),
			"crash_patch.py": []byte("def install(params, **context):\n    pass\n"), "noise.bin": noise,
		} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				c.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
				c.t.Fatal(err)
			}
		}
		art, err := buildArtifact(dir, admission.CheckOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { art.close() })
		batch[i] = &attempt{art: art, rest: i%2 == 1}
	}
	return batch
}

// timeOf is how long a batch takes when nobody disturbs it.
func (c *crash) timeOf(batch []*attempt) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for _, err := range c.publishAll(batch) {
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// publishAndKill kills the server that long after a batch began.
func (c *crash) publishAndKill(batch []*attempt, after time.Duration) {
	process := c.cmd.Process
	timer := time.AfterFunc(after, func() { process.Kill() })
	defer timer.Stop()
	for i, err := range c.publishAll(batch) {
		batch[i].acked = err == nil
	}
	c.kill()
}

func (c *crash) publishAll(batch []*attempt) []error {
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, a := range batch {
		wg.Go(func() { errs[i] = c.publish(a) })
	}
	wg.Wait()
	return errs
}

// publish publishes over the attempt's route.
func (c *crash) publish(a *attempt) error {
	ctx, cancel := context.WithTimeout(context.Background(), publishSeconds*time.Second)
	defer cancel()
	if !a.rest {
		repository, err := name.RepositoryName(registry.AdminAccount, a.art.pack.Manifest.Name)
		if err != nil {
			return err
		}
		_, err = c.client.Push(ctx, repository, a.art.pack.Manifest.Version, a.art.Artifact, nil)
		return err
	}
	body, err := a.art.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.client.Server()+"/api/plugins/publish", body)
	if err != nil {
		return err
	}
	req.ContentLength = a.art.Layer.Size
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusConflict:
		return registry.Errorf(registry.VersionImmutable, "%s", answer)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", res.Status, answer)
	}
	return nil
}

// settled checks that a version is wholly there or wholly absent, and says which; an acknowledged one must be there.
func (c *crash) settled(a *attempt) (there bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), publishSeconds*time.Second)
	defer cancel()
	p, err := find(ctx, c.client, a.ref())
	if errors.Is(err, registry.ErrNotFound) {
		if a.acked {
			c.t.Errorf("%s was acknowledged and is gone", a.ref())
		}
		c.absent(ctx, a)
		return false
	}
	if err != nil {
		c.t.Errorf("%s: %v", a.ref(), err)
		return true
	}
	if err := p.same("publish", a.art.pack.Content(), a.art.pack.Tree()); err != nil {
		c.t.Error(err)
	}
	dir := filepath.Join(c.t.TempDir(), "pulled")
	if err := os.Mkdir(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	quiet := app{env: &Env{Err: io.Discard}}
	if err := quiet.unpackInto(ctx, c.client, p, dir, admission.Policy{}); err != nil {
		c.t.Errorf("%s is there and can't be read: %v", a.ref(), err)
	}
	return true
}

// absent checks that no tag is left of a version that is absent.
func (c *crash) absent(ctx context.Context, a *attempt) {
	c.t.Helper()
	path := fmt.Sprintf("%s/v2/%s/%s/manifests/%s", c.client.Server(), registry.AdminAccount, a.ref().Name, a.ref().Version)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.SetBasicAuth(registry.AdminAccount, c.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		c.t.Errorf("%s is absent, and its tag answers %s", a.ref(), res.Status)
	}
}

// ledgerHolds checks that the ledger file, which outlives the database, names every version that is there, once.
func (c *crash) ledgerHolds(all []*attempt) {
	c.t.Helper()
	f, err := os.Open(filepath.Join(c.data, "ledger.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	rows := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row registry.LedgerRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			c.t.Errorf("a torn line in the ledger: %q", lines.Text())
			continue
		}
		rows[name.Ref{Owner: row.Owner, Name: row.Name, Version: row.Version}.String()+" "+row.Tree.String()]++
	}
	for _, a := range all {
		want := 0
		if c.settled(a) {
			want = 1
		}
		if got := rows[a.ref().String()+" "+a.art.pack.Tree().String()]; got != want {
			c.t.Errorf("%s stands in the ledger %d times, want %d", a.ref(), got, want)
		}
	}
}
