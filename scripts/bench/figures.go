package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	emptyType    = "application/vnd.oci.empty.v1+json"
	layerType    = "application/octet-stream"
	smallSize    = 20 << 10 // bytes of a small artifact's layer
	smallCount   = 500
	smallWorkers = 8
	readers      = 16 // connections of a request-rate run
	tagWorkers   = 8
	listTries    = 21
)

var empty = []byte("{}")

// made numbers what was made, so that nothing is pushed twice.
var made atomic.Uint64

// fresh gives n bytes that no other call gave, and that don't compress.
func fresh(n int64) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], made.Add(1))
	binary.LittleEndian.PutUint64(seed[8:], uint64(time.Now().UnixNano()))
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// manifestOf names one layer.
func manifestOf(layer string, size, i int) []byte {
	return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"artifactType":"application/vnd.example.plugin.v1","config":{"mediaType":%q,"digest":%q,"size":2,"data":"e30="},"layers":[{"mediaType":%q,"digest":%q,"size":%d}],"annotations":{"org.opencontainers.image.title":"plugin-%d","org.opencontainers.image.version":"1.0.%d"}}`,
		manifestType, emptyType, digestOf(empty), layerType, layer, size, i, i)
}

// pushBlob opens an upload and sends the blob whole.
func (l *link) pushBlob(repository, digest string, content []byte) error {
	started, err := l.do("POST", "/v2/"+repository+"/blobs/uploads/", "", nil, 202, false)
	if err != nil {
		return err
	}
	at, err := url.Parse(started.location)
	if err != nil {
		return err
	}
	q := at.Query()
	q.Set("digest", digest)
	_, err = l.do("PUT", at.EscapedPath()+"?"+q.Encode(), layerType, content, 201, false)
	return err
}

func (l *link) pushManifest(repository, reference string, content []byte) error {
	_, err := l.do("PUT", "/v2/"+repository+"/manifests/"+reference, manifestType, content, 201, false)
	return err
}

// pushArtifact pushes the config, a layer and a manifest under the tag v1, and gives the manifest.
func (l *link) pushArtifact(repository string) ([]byte, error) {
	layer := fresh(smallSize)
	m := manifestOf(digestOf(layer), len(layer), 0)
	return m, errors.Join(l.pushBlob(repository, digestOf(empty), empty), l.pushBlob(repository, digestOf(layer), layer), l.pushManifest(repository, "v1", m))
}

// onLink runs f on a connection of its own.
func onLink(s *server, f func(*link) error) error {
	l, err := dial(s)
	if err != nil {
		return err
	}
	return errors.Join(f(l), l.Close())
}

// together runs f on n connections at once, which the servers share, and gives how long that took.
func together(servers []*server, n int, f func(worker int, l *link) error) (time.Duration, error) {
	links := make([]*link, n)
	for i := range links {
		l, err := dial(servers[i%len(servers)])
		if err != nil {
			return 0, err
		}
		defer l.Close()
		links[i] = l
	}
	errs := make([]error, n)
	start := time.Now()
	var all sync.WaitGroup
	for i, l := range links {
		all.Go(func() { errs[i] = f(i, l) })
	}
	all.Wait()
	return time.Since(start), errors.Join(errs...)
}

// rate is how many GETs of a path a second are answered on so many connections.
func rate(servers []*server, path string, length time.Duration) (float64, error) {
	var done atomic.Int64
	end := time.Now().Add(length)
	took, err := together(servers, readers, func(_ int, l *link) error {
		for time.Now().Before(end) {
			if _, err := l.do("GET", path, "", nil, 200, false); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / took.Seconds(), err
}

// pull is how many MB a second one client takes of a large blob.
func pull(s *server, path string, size int64) (mbs float64, err error) {
	err = onLink(s, func(l *link) error {
		start := time.Now()
		a, err := l.do("GET", path, "", nil, 200, false)
		if err == nil && a.size != size {
			err = fmt.Errorf("%s: %d bytes, want %d", path, a.size, size)
		}
		mbs = float64(size) / 1e6 / time.Since(start).Seconds()
		return err
	})
	return mbs, err
}

// smallArtifacts is how many artifacts of one layer and a tag are pushed a second.
func smallArtifacts(servers []*server) (float64, error) {
	repository := "bench/small-" + strconv.FormatUint(made.Add(1), 10)
	if err := onLink(servers[0], func(l *link) error { return l.pushBlob(repository, digestOf(empty), empty) }); err != nil {
		return 0, err
	}
	layers, digests := make([][]byte, smallCount), make([]string, smallCount)
	for i := range layers {
		layers[i] = fresh(smallSize)
		digests[i] = digestOf(layers[i])
	}
	var next atomic.Int64
	took, err := together(servers, smallWorkers, func(_ int, l *link) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= smallCount {
				return nil
			}
			if err := l.pushBlob(repository, digests[i], layers[i]); err != nil {
				return err
			}
			if err := l.pushManifest(repository, fmt.Sprintf("v1.0.%d", i), manifestOf(digests[i], smallSize, i)); err != nil {
				return err
			}
		}
	})
	return smallCount / took.Seconds(), err
}

// createTags is how many tags of one manifest are set a second.
func createTags(servers []*server, repository string, n int) (float64, error) {
	var m []byte
	if err := onLink(servers[0], func(l *link) (err error) {
		m, err = l.pushArtifact(repository)
		return err
	}); err != nil {
		return 0, err
	}
	var next atomic.Int64
	took, err := together(servers, tagWorkers, func(_ int, l *link) error {
		for {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return nil
			}
			if err := l.pushManifest(repository, fmt.Sprintf("v1.%d.%d", i/100, i%100), m); err != nil {
				return err
			}
		}
	})
	return float64(n) / took.Seconds(), err
}

// list is the median of how many milliseconds a GET of a list takes.
func list(s *server, path string) (ms float64, err error) {
	times := make([]float64, 0, listTries)
	err = onLink(s, func(l *link) error {
		for range listTries {
			start := time.Now()
			a, err := l.do("GET", path, "", nil, 200, true)
			if err != nil {
				return err
			}
			if !bytes.Contains(a.body, []byte(`"tags":[`)) {
				return fmt.Errorf("%s lists no tags: %.100s", path, a.body)
			}
			times = append(times, time.Since(start).Seconds()*1e3)
		}
		return nil
	})
	return median(times), err
}
