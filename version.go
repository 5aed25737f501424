package main

import (
	"fmt"
	"runtime"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(w *world) error {
	_, err := fmt.Fprintf(w.out, "parley %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
