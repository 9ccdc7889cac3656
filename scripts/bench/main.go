// Command bench measures Gatehouse beside the distribution registry and a bare net/http server, which is the ceiling, in one
// run on one machine, and prints a table of ratios:
//
//	go run ./scripts/bench -sf bin/sf [-write docs/performance.md] [-runs 3] [-small]
//
// Each figure is the median of its runs; the servers take turns within a run, so that what else the machine does hits them
// alike. The driver speaks HTTP/1.1 over its own connections (http.go), so that it takes as little of the processor as it can
// from whom it measures. Distribution is built with `go install` into a cache folder. With -db and -blobs the
// same work is then done against one and two replicas on PostgreSQL and S3. Launches are measured beside reading and hashing
// the same bytes (launch.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// options say what is measured.
type options struct {
	sf       string
	write    string
	runs     int
	folder   string // on a disk that syncs
	memory   string // on a file system in memory
	big      int64  // bytes of the large blob
	tags     int
	versions int
	seconds  time.Duration // of a request-rate run
	db       string        // PostgreSQL and S3, for replicas
	blobs    string
	only     string // one part alone: "admission" or "launch"
	of       string // of launches only these: "warm", "job", "cold"
	small    bool
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "ceiling":
		exit(ceiling(os.Args[2], os.Args[3]))
	case len(os.Args) == 4 && os.Args[1] == "work":
		exit(jobWork(os.Args[2], os.Args[3]))
	}
	var o options
	var admission, launch bool
	flag.StringVar(&o.sf, "sf", "bin/sf", "the program to measure")
	flag.StringVar(&o.write, "write", "", "replace the table in this file")
	flag.IntVar(&o.runs, "runs", 3, "runs of each figure; the median counts")
	flag.StringVar(&o.folder, "dir", os.TempDir(), "a folder on a disk")
	flag.StringVar(&o.memory, "memory", "/dev/shm", "a folder in memory")
	flag.BoolVar(&o.small, "small", false, "a tenth of the work, to try the program out")
	flag.StringVar(&o.db, "db", "", "an empty PostgreSQL database, to measure replicas too")
	flag.StringVar(&o.blobs, "blobs", "", "an empty S3 bucket for them, as sf serve --blobs takes it")
	flag.BoolVar(&admission, "admission", false, "measure admission alone, and print its table")
	flag.BoolVar(&launch, "launch", false, "measure launches alone, and print their tables")
	flag.StringVar(&o.of, "of", "", "of launches, measure only those with a `warm` cache, or the job, or cold ones")
	flag.Parse()
	o.big, o.tags, o.versions, o.seconds = 1<<30, 10_000, 100_000, 5*time.Second
	switch {
	case admission:
		o.only = "admission"
	case launch:
		o.only = "launch"
	}
	if o.small {
		o.big, o.tags, o.versions, o.seconds = 1<<27, 1000, 10_000, time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures everything and prints, or writes, the tables.
func run(ctx context.Context, o options) (err error) {
	program := ""
	if o.only == "" {
		if program, err = distribution(ctx); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(o.folder, "gatehouse-bench-")
	if err != nil {
		return err
	}
	memory, err := os.MkdirTemp(o.memory, "gatehouse-bench-")
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work), os.RemoveAll(memory)) }()
	b := &bench{ctx: ctx, o: o, results: map[string]map[string][]float64{}, program: program}
	var launches string
	if o.only != "admission" {
		if launches, err = b.launches(work); err != nil {
			return err
		}
	}
	if o.only == "launch" {
		fmt.Print(launches)
		return nil
	}
	if err := b.admission(work); err != nil {
		return err
	}
	if o.only == "admission" {
		fmt.Print(b.admissionTable())
		return nil
	}
	if err := b.compare(work, memory); err != nil {
		return err
	}
	text := b.table() + "\n" + b.admissionTable() + "\n" + launches
	if o.db != "" {
		if err := b.measureReplicas(filepath.Join(work, "replicas")); err != nil {
			return err
		}
		text += "\n" + b.replicaTable()
	}
	text = fmt.Sprintf("Measured on %s with %d processors, %s, `%s`.\n\n%s", runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(),
		time.Now().UTC().Format("2006-01-02"), "make bench", text)
	if o.write != "" {
		return writeTable(o.write, text)
	}
	fmt.Print(text)
	return nil
}

// bench collects what was measured: by figure and server, one value a run.
type bench struct {
	ctx     context.Context
	o       options
	program string // distribution
	results map[string]map[string][]float64
}

func (b *bench) note(figure, server string, value float64) {
	if b.results[figure] == nil {
		b.results[figure] = map[string][]float64{}
	}
	b.results[figure][server] = append(b.results[figure][server], value)
	fmt.Fprintf(os.Stderr, "bench: %-28s %-14s %10.4g\n", figure, server, value)
}

// value is the median of a figure's runs, 0 when there was none.
func (b *bench) value(figure, server string) float64 {
	return median(b.results[figure][server])
}
