package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// The figures of admission: what a server does with the largest valid JobSpec of the vectors (twenty plugins), beside what it
// does with GET /healthz, in one run on one warm server.
const (
	figureHealth      = "health"
	figureDry         = "dry"
	figureDurable     = "durable"
	figureHealthTail  = "health tail"
	figureDryTail     = "dry tail"
	figureDurableTail = "durable tail"
	figureGrowth      = "growth"
	figureExtensions  = "extensions"
	figureHealthWork  = "health work"
	figureDryWork     = "dry work"
	figureDurableWork = "durable work"
)

// The figures of growth are noted under the number of versions.
const fewVersions = 1000

const (
	specPlugins  = 20
	shelfPacks   = 5000
	shelfWorkers = 8
	healthPath   = "/healthz"
	dryPath      = "/api/admission"
	durablePath  = "/api/jobs"
)

// work is a request that is made again and again.
type work struct {
	method, path string
	body         []byte
}

// admission measures one warm server, and then how it fares with more versions in it.
func (b *bench) admission(folder string) (err error) {
	data := filepath.Join(folder, "admission")
	s, err := startGatehouse(b.o.sf, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	spec, err := largestSpec(s)
	if err != nil {
		return err
	}
	health, dry, durable := work{"GET", healthPath, nil}, work{"POST", dryPath, spec}, work{"POST", durablePath, spec}
	for _, w := range []work{health, dry, durable} { // warm
		if _, err := w.rate(s, b.o.seconds/5); err != nil {
			return err
		}
	}
	for range b.o.runs {
		for _, step := range []struct {
			w                work
			rate, tail, cost string
		}{
			{health, figureHealth, figureHealthTail, figureHealthWork}, {dry, figureDry, figureDryTail, figureDryWork},
			{durable, figureDurable, figureDurableTail, figureDurableWork},
		} {
			before, err := s.processor()
			if err != nil {
				return err
			}
			start := time.Now()
			perSecond, err := step.w.rate(s, b.o.seconds)
			if err != nil {
				return err
			}
			after, err := s.processor()
			if err != nil {
				return err
			}
			b.note(step.rate, ours, perSecond)
			b.note(step.cost, ours, (after-before)*1e6/(perSecond*time.Since(start).Seconds()))
			tail, err := step.w.tail(s, perSecond/2, b.o.seconds)
			if err != nil {
				return err
			}
			b.note(step.tail, ours, tail.Seconds()*1e3)
		}
	}
	if err := b.extensions(s); err != nil {
		return err
	}
	for _, versions := range []int{fewVersions, b.o.versions} {
		if err := b.growth(filepath.Join(folder, "growth-"+strconv.Itoa(versions)), versions); err != nil {
			return err
		}
	}
	return nil
}

// rate is how many requests a second are answered on as many connections as the other rates have.
func (w work) rate(s *server, length time.Duration) (float64, error) {
	var done atomic.Int64
	end := time.Now().Add(length)
	took, err := together([]*server{s}, readers, func(_ int, l *link) error {
		for time.Now().Before(end) {
			if _, err := l.do(w.method, w.path, "application/json", w.body, 200, false); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / took.Seconds(), err
}

// tail is the 99th percentile of the times that answers take at a load. They count from when the request was due, so that a
// server that stands still is not asked less.
func (w work) tail(s *server, perSecond float64, length time.Duration) (time.Duration, error) {
	pause := time.Duration(float64(readers) / perSecond * float64(time.Second))
	all := make([][]time.Duration, readers)
	begin := time.Now()
	_, err := together([]*server{s}, readers, func(worker int, l *link) error {
		due := begin.Add(pause * time.Duration(worker) / readers)
		for ; due.Before(begin.Add(length)); due = due.Add(pause) {
			time.Sleep(time.Until(due))
			if _, err := l.do(w.method, w.path, "application/json", w.body, 200, false); err != nil {
				return err
			}
			all[worker] = append(all[worker], time.Since(due))
		}
		return nil
	})
	times := slices.Concat(all...)
	slices.Sort(times)
	if len(times) == 0 {
		return 0, errors.Join(err, errors.New("no request in time"))
	}
	return times[len(times)*99/100], err
}

// growth measures dry runs of a server that holds so many versions besides those of the spec, and what it allocates for one.
func (b *bench) growth(data string, versions int) (err error) {
	s, err := startGatehouse(b.o.sf, data)
	if err != nil {
		return err
	}
	spec, err := largestSpec(s)
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	if err := seed(b.ctx, filepath.Join(data, "gatehouse.db"), versions); err != nil {
		return err
	}
	if s, err = startGatehouse(b.o.sf, data); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	dry := work{"POST", dryPath, spec}
	for range b.o.runs {
		before, err := mallocs(s)
		if err != nil {
			return err
		}
		const n = 2000
		if err := onLink(s, func(l *link) error {
			for range n {
				if _, err := l.do(dry.method, dry.path, "application/json", dry.body, 200, false); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		after, err := mallocs(s)
		if err != nil {
			return err
		}
		b.note(figureGrowth, strconv.Itoa(versions), (after-before)/n)
	}
	return nil
}

// mallocs is how many objects the server has allocated since it began.
func mallocs(s *server) (total float64, err error) {
	err = onLink(s, func(l *link) error {
		a, err := l.do("GET", "/metrics", "", nil, 200, true)
		if err != nil {
			return err
		}
		_, rest, ok := strings.Cut(string(a.body), "\ngo_memstats_mallocs_total ")
		text, _, _ := strings.Cut(rest, "\n")
		if !ok {
			return errors.New("/metrics does not count allocations")
		}
		total, err = strconv.ParseFloat(text, 64)
		return err
	})
	return total, err
}

// packs is how many packs the list to sync has: a tenth in a small run.
func (b *bench) packs() int64 {
	if b.o.versions < 100_000 {
		return shelfPacks / 10
	}
	return shelfPacks
}

// extensions measures the list of what clients sync, among many packs.
func (b *bench) extensions(s *server) error {
	var next atomic.Int64
	packs := b.packs()
	_, err := together([]*server{s}, shelfWorkers, func(_ int, l *link) error {
		for {
			i := next.Add(1)
			if i > packs {
				return nil
			}
			name := fmt.Sprintf("prompt-%d", i)
			if _, err := l.publish(map[string]string{"plugin.yaml": "schema: forge/plugin/v1\nname: " + name + "\nversion: \"1\"\nkind: prompt\n", "README.md": name + "\n"}); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	return onLink(s, func(l *link) error {
		times := make([]float64, 0, listTries)
		for range listTries {
			start := time.Now()
			a, err := l.do("GET", "/api/extensions?source=user", "", nil, 200, true)
			if err != nil {
				return err
			}
			times = append(times, time.Since(start).Seconds()*1e3)
			if n := bytes.Count(a.body, []byte(`"kind":"prompt"`)); int64(n) != packs {
				return fmt.Errorf("the list has %d of %d packs", n, packs)
			}
		}
		b.note(figureExtensions, ours, median(times))
		return nil
	})
}

// publish publishes a pack as the clients do and gives its content digest.
func (l *link) publish(files map[string]string) (string, error) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	tw := tar.NewWriter(zw)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			return "", err
		}
		if _, err := tw.Write([]byte(files[name])); err != nil {
			return "", err
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		return "", err
	}
	a, err := l.do("POST", "/api/plugins/publish", "application/gzip", packed.Bytes(), 200, true)
	if err != nil {
		return "", err
	}
	var published struct{ Digest string }
	return published.Digest, json.Unmarshal(a.body, &published)
}

// largestSpec publishes twenty plugins and gives the largest valid spec of the vectors ("20 plugins keep their order") with
// their digests, and those of a recipe that ships.
func largestSpec(s *server) ([]byte, error) {
	recipe, err := plainRecipe()
	if err != nil {
		return nil, err
	}
	plugins := make([]string, specPlugins)
	err = onLink(s, func(l *link) error {
		for i := range plugins {
			n := specPlugins - i
			name := fmt.Sprintf("p%d", n)
			d, err := l.publish(map[string]string{
				"plugin.yaml":           fmt.Sprintf("schema: forge/plugin/v1\nname: %s\nversion: \"%d\"\nkind: algorithm\nentrypoint: bench_%s:install\n", name, n, name),
				"bench_" + name + ".py": "def install(params, **context):\n    pass\n",
			})
			if err != nil {
				return err
			}
			plugins[i] = fmt.Sprintf(`{"id":"admin/%s","version":"%d","digest":%q}`, name, n, d)
		}
		return nil
	})
	return specOf(recipe, plugins), err
}

// specOf is a spec of a recipe that ships with so many plugins.
func specOf(recipe catalogue.Entry, plugins []string) []byte {
	v, roles := recipe.Versions[0], make([]string, len(recipe.Roles))
	for i, r := range recipe.Roles {
		roles[i] = fmt.Sprintf(`%q:"all"`, r)
	}
	return fmt.Appendf(nil, `{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"demo"},"spec":{"recipe":{"name":%q,"version":%q,"digest":%q},`+
		`"source":{"exp":"experiments/demo"},"framework":{"kind":%q,"version":%q,"runtime_id":%q},"resources":{"pools":[{"name":"all","series":"h200"}],"roles":{%s}},`+
		`"plugins":[%s]},"provenance":{"core_version":%q}}`, recipe.Name, recipe.Version, recipe.Digest, recipe.Framework, v.Version, v.RuntimeID,
		strings.Join(roles, ","), strings.Join(plugins, ","), catalogue.DefaultRelease(dialect.Forge))
}

// plainRecipe is a recipe that ships and asks for nothing.
func plainRecipe() (catalogue.Entry, error) {
	c, ok := catalogue.Builtin(dialect.Forge, catalogue.DefaultRelease(dialect.Forge))
	if !ok {
		return catalogue.Entry{}, errors.New("no catalogue ships")
	}
	for _, e := range c.Entries() {
		needs := e.Framework == "custom" || len(e.Plugins) > 0 || len(e.Versions) == 0 || len(e.Roles) == 0
		if e.Params != nil {
			for _, p := range e.Params.All() {
				needs = needs || p.Required
			}
		}
		if !needs {
			return e, nil
		}
	}
	return catalogue.Entry{}, errors.New("every recipe asks for something")
}

// admissionTable is what was measured, as Markdown.
func (b *bench) admissionTable() string {
	v := func(figure string) float64 { return b.value(figure, ours) }
	few, many := b.value(figureGrowth, strconv.Itoa(fewVersions)), b.value(figureGrowth, strconv.Itoa(b.o.versions))
	var out strings.Builder
	out.WriteString("| admission, 16 connections | unit | measured | ratio | asked |\n| --- | --- | ---: | ---: | ---: |\n")
	row := func(title, unit string, value float64, ratio, asked string) {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", title, unit, number(value), ratio, asked)
	}
	part := func(a, b float64, of string) string {
		if b == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f of %s", a/b, of)
	}
	row("`GET /healthz`", "1/s", v(figureHealth), "", "")
	row("dry runs of a spec with 20 plugins", "1/s", v(figureDry), part(v(figureDry), v(figureHealth), "`/healthz`"), "≥ 0.15")
	row("the same submitted, durable, with receipt", "1/s", v(figureDurable), part(v(figureDurable), v(figureDry), "dry runs"), "≥ 0.4")
	row("processor time of the server for `/healthz`", "µs", v(figureHealthWork), "", "")
	row("for a dry run", "µs", v(figureDryWork), "", "")
	row("for a submission", "µs", v(figureDurableWork), "", "")
	row("p99 of `/healthz` at half of its rate", "ms", v(figureHealthTail), "", "")
	row("p99 of dry runs at half of their rate", "ms", v(figureDryTail), part(v(figureDryTail), v(figureHealthTail), "`/healthz`"), "")
	row("p99 of submissions at half of their rate", "ms", v(figureDurableTail), part(v(figureDurableTail), v(figureHealthTail), "`/healthz`"), "")
	row(fmt.Sprintf("allocations of a dry run among %d versions", b.o.versions), "", many, part(many, few, fmt.Sprintf("those among %d", fewVersions)), "≤ 1.1")
	row(fmt.Sprintf("list of %d packs to sync", b.packs()), "ms", v(figureExtensions), "", "≤ 50")
	return out.String()
}
