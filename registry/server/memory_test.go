package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// maxHeap is how far a request may raise the heap above idle, the test's own client included (issue 3, bad input).
const maxHeap = 64 * limit.MiB

// heapPeak runs do and gives how far the heap rose above what it was before, garbage collected often. Nothing else may
// run meanwhile.
func heapPeak(do func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	idle := heapBytes()
	peak := idle
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			peak = max(peak, heapBytes())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-sampled
	return peak - idle
}

// notShort leaves a measurement out of the short run, which the race detector is used in: its own memory would count.
func notShort(t *testing.T) {
	if testing.Short() {
		t.Skip("the heap is measured in the full run")
	}
}

func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// noise is a file that does not compress.
func noise(size int, seed uint64) string {
	b := make([]byte, size)
	r := rand.NewPCG(seed, 1)
	for i := 0; i+8 <= len(b); i += 8 {
		v := r.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	return string(b)
}

// largePack is a pack whose archive has just under 32 MiB.
func largePack(name string) map[string]string {
	files := algorithm(name, "1.0.0")
	for i := range 4 {
		files[fmt.Sprintf("data/%d.bin", i)] = noise(8*limit.MiB-64*limit.KiB, uint64(i))
	}
	return files
}

// TestMemoryOfLargePacks publishes 32 MiB by both ways and fetches it again.
func TestMemoryOfLargePacks(t *testing.T) {
	notShort(t)
	g := startGatehouse(t)
	content := archiveOf(t, largePack("large"))
	a, verdict := artifactOf(t, archiveOf(t, largePack("large2")))
	if len(content) > limit.Compressed || len(content) < limit.Compressed-limit.MiB || !verdict.Allowed {
		t.Fatalf("the pack has %d bytes and breaks %v", len(content), verdict.Violations)
	}
	steps := []struct {
		name string
		do   func()
	}{
		{"publish by REST", func() { g.publish("alice", content).want(t, http.StatusOK) }},
		{"publish once more", func() { g.publish("alice", content).refused(t, "/api/", http.StatusConflict) }},
		{"push", func() { g.push("alice", "alice", a).want(t, http.StatusCreated) }},
	}
	for _, s := range steps {
		peak := heapPeak(s.do)
		t.Logf("%s: %d KiB of heap above idle", s.name, peak/limit.KiB)
		if peak > maxHeap {
			t.Errorf("%s: %d MiB of heap above idle, want at most %d", s.name, peak/limit.MiB, maxHeap/limit.MiB)
		}
	}
}

// TestMemoryOfManyVersions asks about a recipe with a hundred versions of a megabyte of metadata each: no request holds
// them all.
func TestMemoryOfManyVersions(t *testing.T) {
	notShort(t)
	var meta registry.MetaStore
	g := startGatehouse(t, func(s *setup) { s.change = func(d *registry.Deps) { meta = d.Meta } })
	p := g.published("alice", recipePack(t, "big"))
	err := meta.Update(t.Context(), func(tx registry.Tx) error {
		v, err := tx.Version("alice/big", p.Version)
		if err != nil {
			return err
		}
		large := strings.Repeat(" ", limit.MiB)
		v.Document, v.Catalogue = json.RawMessage(string(v.Document)+large), json.RawMessage(string(v.Catalogue)+large)
		for n := range 100 {
			v.Version, v.Key = fmt.Sprint("1.", n), fmt.Sprint("1.", n)
			if err := tx.InsertVersion(v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := jobSpec(t, dialect.Forge, "a", plugin("alice/big", "1.7", p.Digest))
	for _, c := range []call{
		{method: "GET", path: "/api/plugins"}, {method: "GET", path: "/api/plugins/alice/big"}, {method: "GET", path: "/api/plugins/alice/big?version=1.7"}, {method: "GET", path: "/api/plugins/alice/big/package"},
		{method: "GET", path: "/api/extensions"}, {method: "GET", path: "/api/recipes"}, {method: "POST", path: "/api/admission", body: []byte(spec)},
		{method: "POST", path: "/api/plugins/publish", body: archiveOf(t, with(recipePack(t, "other"), "README.md", "x"))},
	} {
		c.as = "alice"
		peak := heapPeak(func() { g.do(c).want(t, http.StatusOK) })
		t.Logf("%s %s: %d KiB of heap above idle", c.method, c.path, peak/limit.KiB)
		if peak > maxHeap {
			t.Errorf("%s %s: %d MiB of heap above idle, want at most %d", c.method, c.path, peak/limit.MiB, maxHeap/limit.MiB)
		}
	}
}

// TestMemoryOfManyJobs lists jobs with a megabyte each.
func TestMemoryOfManyJobs(t *testing.T) {
	notShort(t)
	var meta registry.MetaStore
	g := startGatehouse(t, func(s *setup) { s.change = func(d *registry.Deps) { meta = d.Meta } })
	id := g.submitted("alice", jobSpec(t, dialect.Forge, "a"))
	err := meta.Update(t.Context(), func(tx registry.Tx) error {
		job, err := tx.Job(id)
		if err != nil {
			return err
		}
		job.Spec, job.Decision = append(job.Spec, make([]byte, limit.MiB)...), append(job.Decision, make([]byte, limit.MiB)...)
		for n := range 60 {
			job.ID = fmt.Sprint("run-", n)
			if err := tx.InsertJob(job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	peak := heapPeak(func() { g.get("alice", "/api/jobs/mine?limit=200").want(t, http.StatusOK) })
	if t.Logf("%d KiB of heap above idle", peak/limit.KiB); peak > maxHeap {
		t.Errorf("%d MiB of heap above idle, want at most %d", peak/limit.MiB, maxHeap/limit.MiB)
	}
}

// sparse is an archive whose one header promises 1 TiB.
func sparse(tb testing.TB) []byte {
	tb.Helper()
	var plain bytes.Buffer
	tw := tar.NewWriter(&plain)
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 1 << 40, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		tb.Fatal(err)
	}
	plain.Write(make([]byte, 4096))
	return zipped(tb, plain.Bytes())
}

// zeros is a gzip stream of so many zeros.
func zeros(tb testing.TB, size int64) []byte {
	tb.Helper()
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		tb.Fatal(err)
	}
	for block := make([]byte, limit.MiB); size > 0; size -= limit.MiB {
		if _, err := zw.Write(block); err != nil {
			tb.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// many repeats a text so that all of it with what is around stays below max.
func many(head, text, tail string, max int) []byte {
	n := (max - len(head) - len(tail)) / len(text)
	return []byte(head + strings.TrimSuffix(strings.Repeat(text, n), ",") + tail)
}

// keys fills an object with members of different names.
func keys(head, tail string, max int) []byte {
	out := []byte(head)
	for i := 0; len(out)+len(tail)+16 < max; i++ {
		out = fmt.Appendf(out, `"%x":"",`, i)
	}
	return append(out[:len(out)-1], tail...)
}

// TestMemoryOfHostileInput sends what is small on the wire and large for whoever is careless. Each is refused, or taken
// where it is harmless, within the bound.
func TestMemoryOfHostileInput(t *testing.T) {
	notShort(t)
	g := startGatehouse(t)
	yaml := func(src string) []byte {
		return archiveOf(t, with(algorithm("demo", "1.0.0"), "plugin.yaml", src))
	}
	publish := func(content []byte) call {
		return call{as: "alice", method: http.MethodPost, path: "/api/plugins/publish", body: content}
	}
	manifest := func(mediaType string, content []byte) call {
		return call{as: "alice", method: http.MethodPut, path: "/v2/alice/x/manifests/v1", body: content, header: map[string]string{"Content-Type": mediaType}}
	}
	asJSON := func(method, path string, content []byte) call {
		return call{as: "admin", method: method, path: path, body: content, header: map[string]string{"Content-Type": "application/json"}}
	}
	const empty = `{"mediaType":"a/b","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2}`
	deep := strings.Repeat("[", 20_000)
	cases := map[string]struct {
		call   call
		status int
	}{
		"64 MiB bomb":             {publish(corpusFile(t, "z01-bomb-64MiB.tgz")), 413},
		"256 MiB bomb":            {publish(corpusFile(t, "z07-bomb-256MiB.tgz")), 413},
		"4 GiB of zeros":          {publish(zeros(t, 4<<30)), 400},
		"1 TiB header":            {publish(sparse(t)), 413},
		"33 MiB":                  {publish(make([]byte, 33*limit.MiB)), 413},
		"20,000 deep YAML":        {publish(yaml(deep + strings.Repeat("]", 20_000))), 400},
		"20,000 deep block YAML":  {publish(yaml(strings.Repeat("- ", 20_000) + "x")), 400},
		"billion laughs":          {publish(yaml(string(corpusFile(t, "y21-billion-laughs.yaml")))), 400},
		"64 KiB of one character": {publish(yaml(strings.Repeat("[", limit.PluginYAML-1))), 400},

		"5 MiB manifest":                   {manifest(imageManifest, corpusFile(t, "m17-5MiB.json.gz")), 413},
		"manifest of empty layers":         {manifest(imageManifest, many(`{"config":`+empty+`,"layers":[`, `{},`, `]}`, limit.Manifest)), 413},
		"index of empty children":          {manifest(imageIndex, many(`{"manifests":[`, `{},`, `]}`, limit.Manifest)), 413},
		"index of children":                {manifest(imageIndex, many(`{"manifests":[`, empty+`,`, `]}`, limit.Manifest)), 413},
		"layer of many addresses":          {manifest(imageManifest, many(`{"config":`+empty+`,"layers":[{"urls":[`, `"",`, `]}]}`, limit.Manifest)), 413},
		"manifest of unknown arrays":       {manifest(imageManifest, many(`{"config":`+empty+`,"x":[`, `[],`, `]}`, limit.Manifest)), 413},
		"manifest of annotations":          {manifest(imageManifest, keys(`{"config":`+empty+`,"layers":[],"annotations":{`, `}}`, limit.Manifest)), 413},
		"layer of annotations":             {manifest(imageManifest, keys(`{"config":{"annotations":{`, `}}}`, limit.Manifest)), 413},
		"manifest of another type":         {manifest("application/x", many(`[`, `[],`, `]`, limit.Manifest)), 201},
		"deep manifest":                    {manifest(imageManifest, corpusFile(t, "m25-deep.json")), 400},
		"deep document of another type":    {manifest("application/x", []byte(strings.Repeat("[", limit.Manifest-1))), 201},
		"deep document of no type":         {manifest("", []byte(strings.Repeat(`{"a":`, limit.Manifest/5))), 400},
		"5 MiB of an account":              {asJSON(http.MethodPost, "/api/admin/users", make([]byte, 5*limit.MiB)), 413},
		"account of arrays":                {asJSON(http.MethodPost, "/api/admin/users", many(`{"x":[`, `[],`, `]}`, limit.JSONBody)), 422},
		"account of keys":                  {asJSON(http.MethodPost, "/api/admin/users", many(`{`, `"":1,`, `}`, limit.JSONBody)), 422},
		"snapshot of arrays":               {asJSON(http.MethodPut, "/api/admin/catalog/sf", many(`{"recipes":[`, `[],`, `]}`, limit.JSONBody)), 413},
		"snapshot of objects":              {asJSON(http.MethodPut, "/api/admin/catalog/sf", many(`{"recipes":[`, `{},`, `]}`, limit.JSONBody)), 413},
		"deep snapshot":                    {asJSON(http.MethodPut, "/api/admin/catalog/sf", []byte(deep)), 413},
		"job of arrays":                    {asJSON(http.MethodPost, "/api/jobs", many(`{"spec":[`, `[],`, `]}`, limit.Document)), 413},
		"2 MiB job":                        {asJSON(http.MethodPost, "/api/jobs", make([]byte, 2*limit.MiB)), 413},
		"job in dry run":                   {asJSON(http.MethodPost, "/api/admission", many(`{"apiVersion":"forge/v2","spec":{"plugins":[`, `{},`, `]}}`, limit.Document)), 200},
		"preview of arrays":                {asJSON(http.MethodPost, "/api/submissions/previews", many(`{"form":"source","spec":{"a":[`, `[],`, `]}}`, limit.JSONBody)), 413},
		"preview of plugins":               {asJSON(http.MethodPost, "/api/submissions/previews", many(`{"form":"source","spec":{"apiVersion":"tuneplane/v1","spec":{"plugins":[`, `{},`, `]}}}`, limit.JSONBody)), 413},
		"quota of arrays":                  {asJSON(http.MethodPost, "/api/admin/quotas", many(`{"username":"alice","x":[`, `[],`, `]}`, limit.JSONBody)), 413},
		"900 KiB of metadata in a header":  {call{as: "alice", method: http.MethodPost, path: "/api/jobs", header: map[string]string{"X-Forge-Meta": string(many(`{"spec":{"a":[`, `[],`, `]}}`, 900*limit.KiB))}}, 413},
		"headers beyond their limit":       {call{as: "alice", method: http.MethodGet, path: "/api/whoami", header: map[string]string{"X-Long": strings.Repeat("x", 2*limit.MiB)}}, 431},
		"path beyond the limit of headers": {call{as: "alice", method: http.MethodGet, path: "/api/plugins/" + strings.Repeat("x", 2*limit.MiB)}, 431},
		"path of 900 KiB":                  {call{as: "alice", method: http.MethodGet, path: "/api/plugins/alice/" + strings.Repeat("x", 900*limit.KiB)}, 404},
		"query of 900 KiB":                 {call{as: "alice", method: http.MethodGet, path: "/v2/alice/unknown/tags/list?" + strings.Repeat("a=b&", 225*limit.KiB)}, 422},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := g.in(t)
			var r reply
			peak := heapPeak(func() { r = g.do(c.call) })
			t.Logf("%d bytes: %d KiB of heap above idle", len(c.call.body), peak/limit.KiB)
			if peak > maxHeap {
				t.Errorf("%d MiB of heap above idle, want at most %d", peak/limit.MiB, maxHeap/limit.MiB)
			}
			r.want(t, c.status)
			if r.status >= 400 && r.status != http.StatusRequestHeaderFieldsTooLarge { // net/http answers that one itself
				r.refused(t, c.call.path, c.status)
			}
		})
	}
}
