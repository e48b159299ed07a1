// Command write writes the values of OWNER.yaml into the files that depend on them, and prints which changed: `make owner`.
package main

import (
	"fmt"
	"os"

	"replayd/owner"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	o, err := owner.Read(".")
	if err != nil {
		return err
	}
	changed, err := o.Write(".")
	for _, path := range changed {
		fmt.Println(path)
	}
	return err
}
