package desk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unseen keeps what is typed into a terminal from being shown until show is called.
// Anything else than a terminal stays as it is.
func unseen(f *os.File) (show func(), err error) {
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
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was) // nothing more can be done
	}, nil
}
