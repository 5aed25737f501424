package main

type demoCmd struct{}

func (demoCmd) Run(*world) error { return nil }
