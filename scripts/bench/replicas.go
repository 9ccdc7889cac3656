package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// measureReplicas does the work of compare with one replica and then with two, which share a database and a bucket.
func (b *bench) measureReplicas(folder string) (err error) {
	var replicas []*server
	defer func() {
		for _, s := range replicas {
			err = errors.Join(err, s.stop())
		}
	}()
	for n := range 2 {
		s, err := startReplica(b.o, filepath.Join(folder, fmt.Sprint(n)), replicas)
		if err != nil {
			return err
		}
		replicas = append(replicas, s)
		for range b.o.runs {
			if err := b.replicaRun(fmt.Sprintf("replicas: %d", n+1), replicas); err != nil {
				return err
			}
		}
	}
	return nil
}

// startReplica starts one. The first makes the administrator, whose token counts everywhere.
func startReplica(o options, data string, before []*server) (*server, error) {
	secret := ""
	if len(before) > 0 {
		secret = before[0].secret
	}
	return startServe(o.sf, data, secret, "--db", o.db, "--blobs", o.blobs)
}

func (b *bench) replicaRun(name string, servers []*server) error {
	big := fresh(b.o.big)
	if err := onLink(servers[0], func(l *link) error {
		_, err := l.pushArtifact("bench/read")
		return errors.Join(err, l.pushBlob("bench/big", digestOf(big), big))
	}); err != nil {
		return err
	}
	repository := fmt.Sprintf("bench/tags-%d", made.Add(1))
	last := servers[len(servers)-1]
	for _, step := range []struct {
		figure string
		run    func() (float64, error)
	}{
		{figurePull, func() (float64, error) { return pull(last, "/v2/bench/big/blobs/"+digestOf(big), b.o.big) }},
		{figureManifest, func() (float64, error) { return rate(servers, "/v2/bench/read/manifests/v1", b.o.seconds) }},
		{figureSmall, func() (float64, error) { return smallArtifacts(servers) }},
		{figureTags, func() (float64, error) { return createTags(servers, repository, b.o.tags/10) }},
		{figureList, func() (float64, error) { return list(last, "/v2/"+repository+"/tags/list") }},
	} {
		value, err := step.run()
		if err != nil {
			return fmt.Errorf("%s, %s: %w", name, step.figure, err)
		}
		b.note(step.figure, name, value)
	}
	return nil
}

// replicaTable is what was measured of them. No ratio is asked: database, bucket, replicas and driver share the processors.
func (b *bench) replicaTable() string {
	var out strings.Builder
	out.WriteString("| PostgreSQL + S3 | unit | one replica | two replicas |\n| --- | --- | ---: | ---: |\n")
	for _, r := range []row{
		{figure: figurePull, title: fmt.Sprintf("pull of a blob of %d MiB, one client", b.o.big>>20), unit: "MB/s"},
		{figure: figureManifest, title: fmt.Sprintf("manifest by tag, %d connections", readers), unit: "1/s"},
		{figure: figureSmall, title: fmt.Sprintf("small artifacts, durable, %d workers", smallWorkers), unit: "1/s"},
		{figure: figureTags, title: fmt.Sprintf("setting %d tags", b.o.tags/10), unit: "1/s"},
		{figure: figureList, title: fmt.Sprintf("list of %d tags", b.o.tags/10), unit: "ms"},
	} {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r.title, r.unit, number(b.value(r.figure, "replicas: 1")), number(b.value(r.figure, "replicas: 2")))
	}
	return out.String()
}
