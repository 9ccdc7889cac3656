// Command conformance runs the official conformance program of the OCI distribution specification against a registry
// and says how many of its checks passed. It is a module of its own, so that what the program needs stays out of
// Gatehouse's go.mod; go.mod and go.sum pin the program.
//
//	go run -C registry/internal/conformance . -server http://127.0.0.1:8080 -user admin -password-file "$PWD/data/admin-token"
//
// Every workflow is on: pull, push, content discovery and content management, with the checks of the specification's
// development version (cancelled uploads, tag parameters, digest headers) and SHA-512. The exit code is 0 only when no check failed,
// broke or was skipped.
package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is the conformance program as `go tool` knows it.
const program = "conformance"

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	t, err := parseTarget(args)
	if err != nil {
		return err
	}
	results, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(results)
	cmd := exec.Command("go", "tool", program)
	cmd.Env = append(os.Environ(), t.environment(results)...)
	cmd.Stderr = stderr
	report, runErr := cmd.Output()
	sum, err := readResults(filepath.Join(results, "junit.xml"))
	if err != nil {
		stdout.Write(report)
		return errors.Join(runErr, err)
	}
	for _, c := range sum.bad() {
		fmt.Fprintf(stdout, "%s: %s\n\t%s\n", c.Status, c.Name, strings.ReplaceAll(c.Said, "\n", "\n\t"))
	}
	fmt.Fprintln(stdout, sum)
	if t.keep != "" {
		if err := os.CopyFS(t.keep, os.DirFS(results)); err != nil {
			return err
		}
	}
	return sum.verdict(runErr)
}

// target is the registry that is checked, and how.
type target struct {
	server         *url.URL
	user, password string
	repository     string
	keep           string
}

func parseTarget(args []string) (target, error) {
	var t target
	var server, passwordFile string
	f := flag.NewFlagSet(program, flag.ContinueOnError)
	f.StringVar(&server, "server", "", "address of the registry, such as http://127.0.0.1:8080")
	f.StringVar(&t.user, "user", "", "account that may push below -repository; none signs in as nobody")
	f.StringVar(&passwordFile, "password-file", "", "file that holds its password or token")
	f.StringVar(&t.repository, "repository", "conformance", "the checks use <repository>/repo1 and <repository>/repo2")
	f.StringVar(&t.keep, "results", "", "new folder to keep the program's reports in")
	if err := f.Parse(args); err != nil {
		return t, err
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return t, fmt.Errorf("-server: %q is no http(s) address", server)
	}
	t.server = u
	if passwordFile != "" {
		b, err := os.ReadFile(passwordFile)
		if err != nil {
			return t, err
		}
		t.password = strings.TrimSpace(string(b))
	}
	return t, nil
}

// environment is the program's configuration.
func (t target) environment(results string) []string {
	tls := "enabled"
	if t.server.Scheme == "http" {
		tls = "disabled"
	}
	return []string{
		"OCI_CONFIGURATION=" + os.DevNull,
		"OCI_VERSION=dev",
		"OCI_DATA_SHA512=true",
		"OCI_REGISTRY=" + t.server.Host,
		"OCI_TLS=" + tls,
		"OCI_REPO1=" + t.repository + "/repo1",
		"OCI_REPO2=" + t.repository + "/repo2",
		"OCI_USERNAME=" + t.user,
		"OCI_PASSWORD=" + t.password,
		"OCI_RESULTS_DIR=" + results,
		"OCI_LOG=error",
	}
}

// summary is what junit.xml says.
type summary struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
	Disabled int `xml:"disabled,attr"`
	Suites   []struct {
		Cases []check `xml:"testcase"`
	} `xml:"testsuite"`
}

type check struct {
	Name   string `xml:"name,attr"`
	Status string `xml:"status,attr"`
	Said   string `xml:"system-out"`
}

func readResults(file string) (summary, error) {
	var s summary
	b, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("the program left no results: %w", err)
	}
	return s, xml.Unmarshal(b, &s)
}

func (s summary) passed() int { return s.Tests - s.Failures - s.Errors - s.Skipped - s.Disabled }

func (s summary) String() string {
	return fmt.Sprintf("conformance: %d passed, %d failed, %d errors, %d skipped, %d disabled",
		s.passed(), s.Failures, s.Errors, s.Skipped, s.Disabled)
}

// bad lists the checks that did not pass.
func (s summary) bad() []check {
	var list []check
	for _, suite := range s.Suites {
		for _, c := range suite.Cases {
			if c.Status != "passed" {
				list = append(list, c)
			}
		}
	}
	return list
}

// verdict is nil when every check ran and passed.
func (s summary) verdict(runErr error) error {
	if s.Failures+s.Errors+s.Skipped > 0 || s.passed() == 0 {
		return errors.New("not every check passed")
	}
	return runErr
}
