package sip

import "syscall"

// readNow reads a datagram that has come in, and never waits for one.
func readNow(fd int, b []byte) (int, error) {
	n, _, err := syscall.Recvfrom(fd, b, syscall.MSG_DONTWAIT)
	return n, err
}
