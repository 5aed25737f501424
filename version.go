package main

import (
	"encoding/json"
	"fmt"
	"runtime"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	SBOM bool `name:"sbom" help:"The modules of this program, as CycloneDX JSON."`
}

// Run prints the version.
func (c versionCmd) Run(e *env) error {
	if c.SBOM {
		return writeSBOM(e.out)
	}
	if c.JSON {
		return json.NewEncoder(e.out).
			Encode(map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	_, err := fmt.Fprintf(e.out, "parley %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
