package admincli

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// program is a running program.
type program struct {
	name     string
	pid      int    // 0: unknown
	command  string // command line; may be empty
	isParley bool
	isOwn    bool // it has files of the data directory open
}

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = "0A"

// findSocketUser returns the program that has a socket open. It needs the rights to see the files of that program.
// dataDir is the data directory of the settings.
func findSocketUser(s socket, dataDir string) program {
	at, err := netip.ParseAddrPort(s.addr)
	if err != nil { // the host is empty or a name
		i := strings.LastIndex(s.addr, ":")
		port, _ := strconv.ParseUint(s.addr[i+1:], 10, 16)
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))
	}
	var inodes []string
	for _, table := range []string{s.network, s.network + "6"} {
		text, err := os.ReadFile("/proc/net/" + table) //nolint:gosec // tcp or udp
		if err == nil {                                // a machine may have no IPv6
			inodes = append(inodes, socketInodes(string(text), s.network == "tcp", at)...)
		}
	}
	self, _ := os.Readlink("/proc/self/exe")
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		link, err := os.Readlink(file)
		inode, isSocket := strings.CutPrefix(link, "socket:[")
		if err != nil || !isSocket || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		dir := filepath.Dir(filepath.Dir(file))
		pid, _ := strconv.Atoi(filepath.Base(dir)) // the pattern admits digits only
		exe, _ := os.Readlink(dir + "/exe")
		name := programName(exe)
		isParley := name == "parley" || name == programName(self)
		return program{name, pid, commandLine(dir), isParley, isParley && usesFolder(dir, dataDir)}
	}
	return program{}
}

// maxCommand is the maximum length of a command line in a finding.
const maxCommand = 100

// commandLine returns the command line of a process. dir is its folder in /proc.
func commandLine(dir string) string {
	text, _ := os.ReadFile(dir + "/cmdline") //nolint:gosec // in /proc
	words := []rune(strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")))
	return string(words[:min(len(words), maxCommand)])
}

// usesFolder reports whether a process has a file of a folder open. dir is the folder of the process in /proc.
func usesFolder(dir, folder string) bool {
	folder, err := filepath.Abs(folder)
	if resolved, fault := filepath.EvalSymlinks(folder); fault == nil {
		folder = resolved
	}
	files, _ := filepath.Glob(dir + "/fd/*")
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		link, _ := os.Readlink(file)
		return strings.HasPrefix(link, folder+"/") && !strings.Contains(link, probeFile)
	})
}

// programName returns the name of an executable, which an upgrade may have replaced.
func programName(exe string) string { return filepath.Base(strings.TrimSuffix(exe, " (deleted)")) }

// socketInodes returns the inodes of the sockets that occupy an address, so that no other socket can use it. table is
// the content of /proc/net/tcp or a similar file.
func socketInodes(table string, listening bool, at netip.AddrPort) (inodes []string) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || listening && f[3] != tcpListen {
			continue
		}
		used, ok := parseProcAddr(f[1])
		if !ok || used.Port() != at.Port() {
			continue
		}
		if used.Addr() == at.Addr().Unmap() || used.Addr().IsUnspecified() || at.Addr().IsUnspecified() {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// parseProcAddr parses an address of /proc/net/tcp: words of 4 bytes in hex, least significant byte first.
func parseProcAddr(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(ip)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}
