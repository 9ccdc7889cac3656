package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// How many publishes the server is killed in; GATEHOUSE_CRASH_PUBLISHES sets another number.
const (
	crashPublishes      = 200
	crashPublishesShort = 50
	crashTogether       = 4 // publishes at a time, by both routes
)

// attempt is one publish and what became of it.
type attempt struct {
	art   *artifact
	rest  bool // over REST instead of OCI
	acked bool // the server answered 2xx
	there bool // it was wholly there after the kills
}

func (a *attempt) ref() name.Ref {
	m := a.art.pack.Manifest
	return name.Ref{Owner: registry.AdminAccount, Name: m.Name, Version: m.Version}
}

// crash is a registry that is killed again and again.
type crash struct {
	t       *testing.T
	data    string
	scratch string // an empty folder
	random  *rand.Rand
	server  *process
	client  *client.Client
	token   string
}

// The server is killed with SIGKILL at random moments while versions are published. After each restart every version is
// wholly there or wholly absent; what was acknowledged is there with the digests that were published; what is absent
// can be published again.
func TestKilledServer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &crash{t: t, data: filepath.Join(t.TempDir(), "data"), scratch: t.TempDir(), random: rand.New(rand.NewPCG(seed, 1))}
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
		if a.there = c.settled(a); a.there {
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
	c.checked()
	t.Logf("%d publishes, %d kills: %d acknowledged, %d more whole without an answer, %d absent", len(all), kills, acked, there-acked, len(all)-there)
	if acked == 0 || there == len(all) {
		t.Errorf("the kills came too late or too early to mean anything")
	}
}

func publishesToKill(t *testing.T) int {
	usual := crashPublishes
	if testing.Short() {
		usual = crashPublishesShort
	}
	return countFrom(t, "GATEHOUSE_CRASH_PUBLISHES", usual)
}

// start starts the server on what the last one left, and waits until it answers.
func (c *crash) start() {
	c.t.Helper()
	c.server = startProcess(c.t, c.data, nil)
	c.token = c.server.adminToken(c.t)
	c.client = c.server.connect(c.t, c.token)
}

func (c *crash) kill() {
	if c.server != nil {
		c.server.kill()
		c.server = nil
	}
}

// makeAttempts makes packs that nobody has published, with some bytes of their own to write.
func (c *crash) makeAttempts(from int) []*attempt {
	c.t.Helper()
	batch := make([]*attempt, crashTogether)
	for i := range batch {
		n := from + i
		noise := make([]byte, 1+c.random.IntN(256<<10))
		for j := range noise {
			noise[j] = byte(c.random.Uint32())
		}
		batch[i] = makeAttempt(c.t, fmt.Sprintf("crash-%d", n%7), fmt.Sprintf("1.%d", n), noise)
		batch[i].rest = i%2 == 1
	}
	return batch
}

// makeAttempt makes a pack with some bytes of its own.
func makeAttempt(t *testing.T, packName, version string, noise []byte) *attempt {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string][]byte{
		"plugin.yaml":    fmt.Appendf(nil, "schema: forge/plugin/v1\nname: %s\nversion: %q\nkind: algorithm\nentrypoint: crash_patch:install\n", packName, version),
		"crash_patch.py": []byte("def install(params, **context):\n    pass\n"), "noise.bin": noise,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	art, err := buildArtifact(dir, admission.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { art.close() })
	return &attempt{art: art}
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
	process := c.server.cmd.Process
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
func (c *crash) publish(a *attempt) error { return publishAttempt(c.client, c.token, a) }

func publishAttempt(to *client.Client, token string, a *attempt) error {
	ctx, cancel := context.WithTimeout(context.Background(), publishSeconds*time.Second)
	defer cancel()
	if !a.rest {
		repository, err := name.RepositoryName(registry.AdminAccount, a.art.pack.Manifest.Name)
		if err != nil {
			return err
		}
		_, err = to.Push(ctx, repository, a.art.pack.Manifest.Version, a.art.Artifact, nil)
		return err
	}
	body, err := a.art.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Server()+"/api/plugins/publish", body)
	if err != nil {
		return err
	}
	req.ContentLength = a.art.Layer.Size
	req.Header.Set("Authorization", "Bearer "+token)
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
	case res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests:
		return registry.Errorf(registry.Unavailable, "%s", answer)
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
	dir, err := os.MkdirTemp(c.scratch, "pulled")
	if err != nil {
		c.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	quiet := app{env: &Env{Err: io.Discard}}
	if err := quiet.unpackInto(ctx, c.client, p, dir, admission.Policy{}); err != nil {
		c.t.Errorf("%s is there and can't be read: %v", a.ref(), err)
	}
	return true
}

// checked lets the server read again all that it holds: nothing of it may be damaged or missing.
func (c *crash) checked() {
	c.t.Helper()
	report, err := c.client.Fsck(c.t.Context(), wire.Fsck{}, func(f registry.Finding) error {
		c.t.Errorf("after the kills: %+v", f)
		return nil
	}, nil)
	if err != nil || !report.Whole() || report.Blobs == 0 {
		c.t.Errorf("fsck read %d blobs and found %d damaged: %v", report.Blobs, report.Damage, err)
	}
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
		if a.there {
			want = 1
		}
		if got := rows[a.ref().String()+" "+a.art.pack.Tree().String()]; got != want {
			c.t.Errorf("%s stands in the ledger %d times, want %d", a.ref(), got, want)
		}
	}
}
