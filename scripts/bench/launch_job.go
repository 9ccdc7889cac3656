package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// jobCost is what a command takes inside and outside of a launch, by its own clock.
type jobCost struct {
	kind, account   string
	outside, inside float64 // ms, medians
	processorRatio  float64 // of the processor time, inside to outside
	ratio           float64 // the median of interleaved pairs
}

// jobKinds are the commands: one that lives on the file system and one that computes.
var jobKinds = []string{"files", "processor"}

// jobPairs is how often each is run inside and outside.
func (b *bench) jobPairs() int {
	if b.o.small {
		return 6
	}
	return 30
}

// jobCosts measures both kinds in a job of a node.
func (b *bench) jobCosts(n node) ([]jobCost, error) {
	j, err := n.admit(shape{packs: 1, files: 4, bytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := reachable(self, n.folder)
	if err != nil {
		return nil, err
	}
	var all []jobCost
	for _, kind := range jobKinds {
		c := jobCost{kind: kind, account: n.name}
		var inside, outside, ratios, processors []float64
		for i := range b.jobPairs() {
			if err := b.ctx.Err(); err != nil {
				return nil, err
			}
			in, out, err := n.pair(j, program, kind, i%2 == 0)
			if err != nil {
				return nil, err
			}
			inside, outside = append(inside, in.wall), append(outside, out.wall)
			ratios, processors = append(ratios, in.wall/out.wall), append(processors, in.processor/out.processor)
		}
		c.inside, c.outside, c.ratio, c.processorRatio = median(inside), median(outside), median(ratios), median(processors)
		fmt.Fprintf(os.Stderr, "bench: %s, job of %s: outside %.1f ms, inside %.1f, pairs %.3f, processor %.3f\n", n.name, kind, c.outside, c.inside, c.ratio, c.processorRatio)
		all = append(all, c)
	}
	return all, nil
}

// ownTimes is what a command says of itself, in ms.
type ownTimes struct{ wall, processor float64 }

// pair runs a command inside a launch and outside, one after the other.
func (n node) pair(j launchJob, program, kind string, insideFirst bool) (inside, outside ownTimes, err error) {
	at := filepath.Join(j.dir, "experiments", "demo")
	for i := range 2 {
		if (i == 0) == insideFirst {
			inside, err = own(n.launch(j, program, "work", kind, "experiments/demo"))
		} else {
			cmd := n.command()
			cmd.Path, cmd.Args = program, []string{program, "work", kind, at}
			outside, err = own(cmd)
		}
		if err != nil {
			return inside, outside, err
		}
	}
	return inside, outside, nil
}

// own runs a command that says what it took.
func own(cmd *exec.Cmd) (t ownTimes, err error) {
	var said strings.Builder
	cmd.Stdout = &said
	if _, err := timed(cmd); err != nil {
		return t, err
	}
	_, err = fmt.Sscan(said.String(), &t.wall, &t.processor)
	return t, err
}

// The work of a command: about a fifth of a second each.
const (
	workFiles  = 1500
	workBytes  = 8 << 10
	workRounds = 200
)

// jobWork is the command that is measured inside and outside. It says what it took by its own clock.
func jobWork(kind, dir string) error {
	start := time.Now()
	var err error
	if kind == "files" {
		err = workOnFiles(dir)
	} else {
		workOnProcessor()
	}
	if err != nil {
		return err
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	_, err = fmt.Println(ms(time.Since(start)), ms(time.Duration(usage.Utime.Nano()+usage.Stime.Nano())))
	return err
}

// workOnFiles makes, reads, renames, lists and removes small files.
func workOnFiles(dir string) error {
	dir, err := os.MkdirTemp(dir, "work-")
	if err != nil {
		return err
	}
	content := fresh(workBytes)
	for i := range workFiles {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
		if _, err := os.ReadFile(name); err != nil {
			return err
		}
		if err := os.Rename(name, name+".done"); err != nil {
			return err
		}
	}
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// workOnProcessor hashes.
func workOnProcessor() {
	content := fresh(2 << 20)
	for range workRounds {
		sum := sha256.Sum256(content)
		content[0] = sum[0]
	}
}

func jobTable(all []jobCost) string {
	var out strings.Builder
	out.WriteString("| a job's command, 30 interleaved pairs | account | outside, ms | inside, ms | inside to outside, pair by pair | of processor time | asked |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %.3f | %.3f | ≤ 1.03 |\n", map[string]string{"files": "works on files", "processor": "computes"}[c.kind],
			c.account, number(c.outside), number(c.inside), c.ratio, c.processorRatio)
	}
	return out.String()
}
