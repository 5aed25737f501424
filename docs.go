package main

import (
	"embed"
	"fmt"

	"github.com/parley-voice/parley/api/docs"
)

// documentation holds what /docs/guide shows.
//
//go:embed docs CHANGELOG.md CONTRIBUTING.md
var documentation embed.FS

type docsCmd struct {
	Build docsBuildCmd `cmd:"" help:"Write the documentation as static HTML files."`
}

type docsBuildCmd struct {
	Dir string `required:"" placeholder:"DIR" help:"Write to folder DIR; index.html is the first page."`
}

// Run writes the pages.
func (c docsBuildCmd) Run(e *env) error {
	n, err := docs.New(documentation).Build(c.Dir, version)
	if err == nil {
		fmt.Fprintf(e.out, "%d pages written to %s\n", n, c.Dir)
	}
	return err
}
