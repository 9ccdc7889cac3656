// Command sf is Gatehouse: server, client and launch agent in one static binary.
package main

import (
	"os"

	"github.com/gatehouse-registry/gatehouse/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
