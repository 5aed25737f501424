package main

import (
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"strings"
)

// A component is a component of a software bill of materials in CycloneDX 1.6 (ECMA-424).
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl"`
}

func newComponent(kind, path, version string) component {
	url := "pkg:golang/" + path
	if version != "" {
		url += "@" + version
	}
	return component{kind, url, path, version, url}
}

// writeSBOM writes the modules that this program was built from as CycloneDX JSON. They come from the program itself.
func writeSBOM(w io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program has no information about its modules")
	}
	all := []component{newComponent("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, newComponent("library", m.Path, m.Version))
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"component": newComponent("application", info.Main.Path, version)},
		"components": all,
	})
}
