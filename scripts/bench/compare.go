package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// The servers, as the table names them.
const (
	ours   = "gatehouse"
	theirs = "distribution"
	bare   = "ceiling"
)

// quiet is how long a server may rest before its memory is looked at.
const quiet = 15 * time.Second

// compare measures all three servers. Those of a disk live through every run, so that their memory at the end is that of a
// server that has worked.
func (b *bench) compare(work, memory string) (err error) {
	gatehouse, err := startGatehouse(b.o.sf, filepath.Join(work, ours))
	if err != nil {
		return err
	}
	running := []*server{gatehouse}
	defer func() {
		for _, s := range running {
			err = errors.Join(err, s.stop())
		}
	}()
	other, err := startDistribution(b.program, filepath.Join(work, theirs))
	if err != nil {
		return err
	}
	running = append(running, other)
	floor, err := startCeiling(filepath.Join(work, bare))
	if err != nil {
		return err
	}
	running = append(running, floor)
	for n := range b.o.runs {
		if err := errors.Join(b.ctx.Err(), b.reads(gatehouse, other, floor), b.writes(n, gatehouse, other)); err != nil {
			return err
		}
		if err := b.pushes(filepath.Join(memory, strconv.Itoa(n))); err != nil {
			return err
		}
	}
	if err := b.memory(gatehouse, other); err != nil {
		return err
	}
	running = []*server{floor}
	if err := errors.Join(gatehouse.stop(), other.stop()); err != nil {
		return err
	}
	return b.starts(filepath.Join(work, ours), filepath.Join(work, theirs))
}

// reads measures what is read, one server after the other.
func (b *bench) reads(gatehouse, other, floor *server) error {
	blob := fresh(b.o.big)
	name := digestOf(blob)
	path := map[*server]string{gatehouse: "/v2/bench/big/blobs/" + name, other: "/v2/bench/big/blobs/" + name, floor: "/blob"}
	for s := range path {
		if err := onLink(s, func(l *link) error {
			if s == floor {
				_, err := l.do("PUT", "/blob?digest="+name, layerType, blob, 201, false)
				return err
			}
			_, err := l.pushArtifact("bench/read")
			return errors.Join(err, l.pushBlob("bench/big", name, blob))
		}); err != nil {
			return err
		}
	}
	for _, s := range []*server{floor, gatehouse, other} {
		mbs, err := pull(s, path[s], b.o.big)
		if err != nil {
			return err
		}
		b.note(figurePull, s.name, mbs)
	}
	for _, s := range []*server{floor, gatehouse, other} {
		path := "/v2/bench/read/manifests/v1"
		if s == floor {
			path = "/small"
		}
		perSecond, err := rate([]*server{s}, path, b.o.seconds)
		if err != nil {
			return err
		}
		b.note(figureManifest, s.name, perSecond)
	}
	return nil
}

// writes measures small pushes and tags.
func (b *bench) writes(n int, servers ...*server) error {
	repository := "bench/tags-" + strconv.Itoa(n)
	steps := []struct {
		figure string
		run    func(s *server) (float64, error)
	}{
		{figureSmall, func(s *server) (float64, error) { return smallArtifacts([]*server{s}) }},
		{figureTags, func(s *server) (float64, error) { return createTags([]*server{s}, repository, b.o.tags) }},
		{figureList, func(s *server) (float64, error) { return list(s, "/v2/"+repository+"/tags/list") }},
		{figureFirstPage, func(s *server) (float64, error) { return list(s, "/v2/"+repository+"/tags/list?n=100") }},
		{figureLastPage, func(s *server) (float64, error) { return list(s, "/v2/"+repository+"/tags/list?n=100&last=v1.97.0") }},
		{figureManifestTags, func(s *server) (float64, error) {
			return rate([]*server{s}, "/v2/"+repository+"/manifests/v1.1.1", b.o.seconds)
		}},
	}
	for _, step := range steps {
		for _, s := range servers {
			value, err := step.run(s)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", step.figure, s.name, err)
			}
			b.note(step.figure, s.name, value)
		}
	}
	return nil
}

// pushes measures a large push into memory, with servers of its own.
func (b *bench) pushes(folder string) error {
	blob := fresh(b.o.big)
	name := digestOf(blob)
	start := []func() (*server, error){
		func() (*server, error) { return startCeiling(filepath.Join(folder, bare)) },
		func() (*server, error) { return startGatehouse(b.o.sf, filepath.Join(folder, ours)) },
		func() (*server, error) { return startDistribution(b.program, filepath.Join(folder, theirs)) },
	}
	for _, start := range start {
		s, err := start()
		if err != nil {
			return err
		}
		var took time.Duration
		err = onLink(s, func(l *link) (err error) {
			begin := time.Now()
			if s.name == bare {
				_, err = l.do("PUT", "/blob?digest="+name, layerType, blob, 201, false)
			} else {
				err = l.pushBlob("bench/big", name, blob)
			}
			took = time.Since(begin)
			return err
		})
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		b.note(figurePush, s.name, float64(b.o.big)/1e6/took.Seconds())
	}
	return nil
}

// memory looks at what rests in memory after all the work.
func (b *bench) memory(servers ...*server) error {
	time.Sleep(quiet)
	for _, s := range servers {
		mib, err := s.resident()
		if err != nil {
			return err
		}
		b.note(figureMemory, s.name, mib)
	}
	return nil
}

// starts measures how long a start takes with many versions in the store; the other registry reads nothing of its store when
// it starts, so it starts over what the runs left.
func (b *bench) starts(data, other string) error {
	if err := seed(b.ctx, filepath.Join(data, "gatehouse.db"), b.o.versions); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	first, err := startGatehouse(b.o.sf, data) // copies what was seeded into the ledger's file
	if err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	for range max(b.o.runs, 5) {
		for _, start := range []func() (*server, error){
			func() (*server, error) { return startGatehouse(b.o.sf, data) },
			func() (*server, error) { return startDistribution(b.program, other) },
		} {
			s, err := start()
			if err != nil {
				return err
			}
			b.note(figureStart, s.name, s.ready.Seconds()*1e3)
			if err := s.stop(); err != nil {
				return err
			}
		}
	}
	return nil
}

// seed puts n versions of packs into the metadata of a server that does not run: rows and ledger, without bytes.
func seed(ctx context.Context, database string, n int) error {
	meta, err := metastore.OpenSQLite(ctx, database)
	if err != nil {
		return err
	}
	const versions = 100 // of a pack
	for pack := range n / versions {
		name := fmt.Sprintf("pack-%04d", pack)
		err := meta.Update(ctx, func(tx registry.Tx) error {
			if err := tx.EnsureRepository(registry.Repository{Name: "seed/" + name, Owner: "seed", PackName: name, PackFold: name, PackKind: "algorithm", CreatedAt: time.Now()}); err != nil {
				return err
			}
			for v := range versions {
				if err := tx.InsertVersion(seeded(name, fmt.Sprintf("1.0.%d", v))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return errors.Join(err, meta.Close())
		}
	}
	return meta.Close()
}

func seeded(pack, version string) registry.Version {
	of := func(what string) digest.Digest { return digest.FromBytes([]byte(what + pack + version)) }
	return registry.Version{
		Repository: "seed/" + pack, Owner: "seed", PackName: pack, Version: version, Key: version, Dialect: dialect.Forge, Kind: "algorithm",
		Manifest: of("manifest"), Content: of("content"), Tree: of("tree"), Layer: digest.Descriptor{MediaType: layerType, Digest: of("layer"), Size: 1000},
		Config: digest.Descriptor{MediaType: emptyType, Digest: of("config"), Size: 1000}, Summary: "made for a measurement", Document: []byte("{}"),
		Enabled: true, CreatedBy: "admin", CreatedAt: time.Now(), Files: 2, Bytes: 4000,
	}
}
