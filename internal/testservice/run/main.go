// Command run starts the servers that a script needs, tells it their addresses in its environment, runs it, and ends them
// with it:
//
//	go run ./internal/testservice/run -postgres 2 -s3 1 -- sh script.sh
//
// With -postgres N the command finds the addresses of N empty databases of one server in GATEHOUSE_TEST_POSTGRES,
// GATEHOUSE_TEST_POSTGRES_2, and so on; with -s3 N those of N empty buckets in GATEHOUSE_TEST_S3, GATEHOUSE_TEST_S3_2, and so
// on, with their credentials in the variables that `sf` reads. So `sf serve --db "$GATEHOUSE_TEST_POSTGRES" --blobs
// "$GATEHOUSE_TEST_S3"` is a server to try things on. The exit status is that of the command, 1 when a server could not be
// started.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
)

func main() {
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservice:", err)
	}
	os.Exit(status)
}

func run() (status int, err error) {
	databases := flag.Int("postgres", 0, "start PostgreSQL with this many empty databases")
	buckets := flag.Int("s3", 0, "start an S3 server with this many empty buckets")
	flag.Parse()
	if flag.NArg() == 0 {
		return 1, errors.New("name the command to run after --")
	}
	// From here on a signal is the command's, and the servers end after it.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	env := os.Environ()
	if *databases > 0 {
		s, failed := testservice.StartPostgres()
		if failed != nil {
			return 1, fmt.Errorf("start PostgreSQL: %w", failed)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		for n := range *databases {
			address, failed := s.NewDatabase()
			if failed != nil {
				return 1, failed
			}
			env = append(env, variable("GATEHOUSE_TEST_POSTGRES", n)+"="+address)
		}
	}
	if *buckets > 0 {
		s, failed := testservice.StartVersity()
		if failed != nil {
			return 1, fmt.Errorf("start an S3 server: %w", failed)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		for n := range *buckets {
			bucket, failed := s.NewBucket()
			if failed != nil {
				return 1, failed
			}
			env = append(append(env, bucket.Environment()...), variable("GATEHOUSE_TEST_S3", n)+"="+bucket.Address())
		}
	}
	return command(flag.Args(), env, signals)
}

// variable names the n-th of several values.
func variable(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s_%d", name, n+1)
}

// command runs the command to its end and passes signals on to it.
func command(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				cmd.Process.Signal(s) // one that has ended needs none
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := failed.ExitCode(); code > 0 {
			return code, nil
		}
		return 1, failed
	}
	return 0, err
}
