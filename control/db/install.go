package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoPostgres is returned if no Postgres is installed.
var ErrNoPostgres = errors.New("no Postgres found: install it (Debian: apt-get install -y postgresql), or set PARLEY_DATABASE_URL")

// HasPostgres reports whether a Postgres for the built-in database is installed.
func HasPostgres() bool { return len(installs()) > 0 }

// install is a Postgres installation on this machine.
type install struct {
	bin   string // folder of the programs
	major int
}

// findInstall returns the newest installation of Postgres. If want is not 0, it returns the installation of that
// major version, because a major version cannot open the data of another.
func findInstall(want int) (install, error) {
	all := installs()
	if len(all) == 0 {
		return install{}, ErrNoPostgres
	}
	if want == 0 {
		return all[0], nil
	}
	i := slices.IndexFunc(all, func(in install) bool { return in.major == want })
	if i < 0 {
		return install{}, fmt.Errorf(
			"the data directory holds data of Postgres %d, but Postgres %d is installed: "+
				"install postgresql-%d, or move the data with pg_dump; nothing was changed",
			want,
			all[0].major,
			want,
		)
	}
	return all[i], nil
}

// installs returns all installations, newest first.
func installs() []install {
	var all []install
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // cannot fail: the pattern is well formed
	for _, dir := range dirs {
		major, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			all = append(all, install{dir, major})
		}
	}
	if in, ok := onPath(); ok {
		all = append(all, in)
	}
	slices.SortStableFunc(all, func(a, b install) int { return b.major - a.major })
	return all
}

func executable(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

func onPath() (install, bool) {
	name, err := exec.LookPath("postgres")
	if err != nil {
		return install{}, false
	}
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return install{}, false
	}
	dir := filepath.Dir(name)
	out, err := exec.Command(name, "--version").Output() //nolint:gosec,noctx // the operator's own PATH; it prints one line
	m := regexp.MustCompile(`\) (\d+)`).FindSubmatch(out)
	if err != nil || m == nil || !executable(filepath.Join(dir, "initdb")) {
		return install{}, false
	}
	major, err := strconv.Atoi(string(m[1]))
	return install{dir, major}, err == nil
}

// dataVersion returns the major version of Postgres that created the data in dir, or 0 if dir has no data.
func dataVersion(dir string) (int, error) {
	text, err := readRegular(filepath.Join(dir, "PG_VERSION"), 16)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("data directory: %s holds %q: want a version number", filepath.Join(dir, "PG_VERSION"), text)
	}
	return v, nil
}

// account is the user that runs Postgres. Postgres refuses to run as root.
type account struct {
	name     string
	uid, gid uint32
	change   bool // the user differs from the user of this process
}

func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{
			name: "this user",
			uid:  uint32(os.Geteuid()), //nolint:gosec // ids are not negative on Unix
			gid:  uint32(os.Getegid()), //nolint:gosec // likewise
		}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return account{name, uint32(uid), uint32(gid), true}, nil
		}
	}
	return account{}, errors.New("postgres refuses to run as root: create a user postgres")
}

// checkReachable returns an error if the account cannot enter a folder above dir. The error names the folder.
func (a account) checkReachable(dir string) error {
	if !a.change {
		return nil
	}
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		st, err := os.Stat(p)
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		mine := ok && sys.Uid == a.uid && st.Mode()&0o100 != 0
		if !mine && st.Mode()&0o001 == 0 {
			return fmt.Errorf(
				"data directory: the Postgres user %s cannot traverse %s (mode %v): chmod o+x it, or choose another data directory",
				a.name, p, st.Mode().Perm(),
			)
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}
