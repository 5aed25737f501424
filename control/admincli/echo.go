package admincli

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// disableEcho turns off the echo of the terminal f until show is called. It does nothing if f is not a terminal.
func disableEcho(f *os.File) (show func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}, nil //nolint:nilerr // no terminal
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO
	if err = unix.IoctlSetTermios(fd, unix.TCSETS, &quiet); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(os.Stderr, "Password: ")
	return func() {
		fmt.Fprintln(os.Stderr)
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was) // if this fails, nothing can be done
	}, nil
}
