package main

import "github.com/parley-voice/parley/control/store"

type linksCmd struct {
	Rotate linksRotateCmd `cmd:"" help:"Revoke all links to recordings, on all nodes, within 5 s."`
}

type linksRotateCmd struct{}

// Run replaces the key that signs links.
func (linksRotateCmd) Run(e *env) error {
	d, err := e.open()
	if err != nil {
		return err
	}
	defer d.Close()
	return store.RotateKey(e, d.Pool, linksKey)
}

const linksKey = "links"
