package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// origin is a registry that serves one pack, so many requests in a second at most, and refuses the rest with a Retry-After.
type origin struct {
	art    *artifact
	layer  []byte
	limit  int
	served map[int64]int // by second
	asked  map[int64]int
	mu     sync.Mutex
}

var blobPath = regexp.MustCompile(`/(?:blobs|manifests)/(sha256:[0-9a-f]{64})$`)

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	o.serve(rec, r)
	res := rec.Result()
	res.Request = r
	return res, nil
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	time.Sleep(10 * time.Millisecond)
	second := time.Now().Unix()
	o.mu.Lock()
	o.asked[second]++
	refuse := o.served[second] >= o.limit
	if !refuse {
		o.served[second]++
	}
	status := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[o.asked[second]%2]
	o.mu.Unlock()
	if refuse {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(status)
		return
	}
	found := blobPath.FindStringSubmatch(r.URL.Path)
	if found == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	body, kind := o.layer, "application/octet-stream"
	switch found[1] {
	case o.art.digest.String():
		body, kind = o.art.Manifest, "application/vnd.oci.image.manifest.v1+json"
	case o.art.Layer.Digest.String():
	default:
		body = o.art.Config
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", found[1])
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// Very many nodes that start one job at one time do not melt the registry: each has its pack in the end, and the registry is
// asked little more than it can serve. GATEHOUSE_TEST_AGENTS sets how many; make soak has 1,000.
func TestManyAgents(t *testing.T) {
	agents := countFrom(t, "GATEHOUSE_TEST_AGENTS", 100)
	art := makeAttempt(t, "swarm", "1.0", []byte("noise")).art
	layer, err := os.ReadFile(art.archive)
	if err != nil {
		t.Fatal(err)
	}
	pin := receipt.Pin{ID: "lab/swarm", Version: "1.0", Kind: "algorithm", Content: art.pack.Content(), Tree: art.pack.Tree(), Manifest: art.digest}
	// As much as the registry of so many nodes serves: all of them in a minute and a half or so.
	o := &origin{art: art, layer: layer, limit: max(1, agents*3/60), served: map[int64]int{}, asked: map[int64]int{}}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var wg sync.WaitGroup
		var last time.Duration
		var mu sync.Mutex
		for n := range agents {
			wg.Go(func() {
				if err := agent(t, o, filepath.Join(dir, strconv.Itoa(n)), pin); err != nil {
					t.Errorf("agent %d: %v", n, err)
				}
				mu.Lock()
				last = max(last, time.Since(began))
				mu.Unlock()
			})
		}
		wg.Wait()
		total, peak, first := 0, 0, began.Unix()
		for second, n := range o.asked {
			if total += n; second > first+1 {
				peak = max(peak, n)
			}
		}
		t.Logf("%d agents, %d requests a second allowed: the last one done after %v; %d requests (%.1f an agent), at most %d in a second after the first one", agents, o.limit, last, total, float64(total)/float64(agents), peak)
		if total > 12*agents {
			t.Errorf("%d requests of %d agents, expected 12 each at most", total, agents)
		}
		if most := o.limit + agents/2; peak > most {
			t.Errorf("%d requests in one second, expected %d at most", peak, most)
		}
		if last > 5*time.Minute {
			t.Errorf("the last agent was done after %v", last)
		}
	})
}

// agent fetches a pack as a launch on a node of its own does.
func agent(t *testing.T, o *origin, dir string, pin receipt.Pin) error {
	c, err := client.New(client.Options{Server: "http://origin.example", Account: "node", Token: "token", UserAgent: "test", RetryFor: defaultPatience, Transport: o})
	if err != nil {
		return err
	}
	cache, err := nodecache.Open(dir, nodecache.Options{})
	if err != nil {
		return err
	}
	defer cache.Close()
	a := app{env: newEnv(nil, nil, io.Discard, io.Discard), opt: &rootOptions{}}
	e, err := cache.Tree(t.Context(), pin, &fetcher{app: a, signIn: &launchSignIn{app: a, person: c}})
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(e.Path(), "noise.bin"))
	if err == nil && string(b) != "noise" {
		err = fmt.Errorf("got %q", b)
	}
	return err
}

// Of many launches of one job on one node that start at once with a cold cache, one asks the registry, once for each thing.
// GATEHOUSE_TEST_LAUNCHES sets how many.
func TestManyLaunchesOneFetch(t *testing.T) {
	launches := countFrom(t, "GATEHOUSE_TEST_LAUNCHES", 24)
	n := &testNode{t: t, dir: t.TempDir()}
	s, stop, err := servertest.Run(n.path("data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	forward := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if found := blobPath.FindStringSubmatch(r.URL.Path); found != nil && r.Header.Get("Authorization") != "" {
			mu.Lock()
			asked[found[1]]++
			mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	if n.self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	n.env = []string{
		asCommand + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "GATEHOUSE_HOME=" + n.path("home"),
		"GATEHOUSE_CACHE=" + n.path("cache"), "GATEHOUSE_TRUST=" + n.path("trust"), "GATEHOUSE_NODE=" + n.path("none"),
	}
	n.sf("login", front.URL, "--token", s.Token)
	n.sf("admin", "account", "create", "alice")
	token := strings.TrimSpace(n.sf("admin", "token", "create", "alice"))
	n.write("trust", n.sf("admin", "key", "show"))
	n.sf("login", front.URL, "--token", token)
	n.admitJob()

	mu.Lock()
	clear(asked)
	mu.Unlock()
	n.env = append(n.env, "GATEHOUSE_CACHE="+n.path("cold"))
	began := time.Now()
	var wg sync.WaitGroup
	for range launches {
		wg.Go(func() {
			cmd := n.command("launch", "--jobspec", n.spec(), "--allow", "private-copy", "--", "true")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
	wg.Wait()
	t.Logf("%d launches in %v", launches, time.Since(began))
	if len(asked) != 6 { // manifest, config and archive of two packs
		t.Errorf("the registry was asked for %d things, expected 6", len(asked))
	}
	for what, times := range asked {
		if times != 1 {
			t.Errorf("%s was asked for %d times, expected once", what, times)
		}
	}
	for _, sub := range []string{"tmp", "claims", "holds", "roots"} {
		if left, err := os.ReadDir(filepath.Join(n.path("cold"), sub)); err != nil || len(left) > 0 {
			t.Errorf("%s holds %v (%v)", sub, left, err)
		}
	}
}
