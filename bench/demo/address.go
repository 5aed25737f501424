package demo

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// FreeAddr returns addr, or the same host with port 0 if the port is taken.
func FreeAddr(ctx context.Context, network, addr string) string {
	var lc net.ListenConfig
	var err error
	if network == "udp" {
		var c net.PacketConn
		if c, err = lc.ListenPacket(ctx, network, addr); err == nil {
			_ = c.Close()
			return addr
		}
	} else {
		var l net.Listener
		if l, err = lc.Listen(ctx, network, addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // addr is invalid; the listener will report it
	}
	return net.JoinHostPort(host, "0")
}

// Reachable returns a data folder that the database's user can enter: dir, or a folder under
// /var/tmp if the demo runs as root and a parent folder of dir is closed to other users.
func Reachable(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	for at := filepath.Dir(abs); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && info.Mode()&0o001 == 0 {
			return filepath.Join("/var/tmp", "parley-demo-"+strings.Trim(strings.ReplaceAll(abs, "/", "-"), "-.")), nil
		}
		if at == filepath.Dir(at) {
			return dir, nil
		}
	}
}
