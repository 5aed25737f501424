// Command parley places phone calls and talks on them.
package main

func main() {}
