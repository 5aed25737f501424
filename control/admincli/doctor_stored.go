package admincli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

// stored runs the checks that need the database.
type stored struct {
	*Examination

	fileName string
	file     apply.Spec // of fileName
	fileErr  error

	box  secretbox.Box
	open func() (*db.DB, error)         // opens the database once; both results are nil if it does not exist yet
	keys func() (map[string]int, error) // sets the keys of box once; returns how many secrets each missing key encrypts
}

// errUnusable is returned by checks that need the database or the keys, if another check reports why these cannot be
// used.
var errUnusable = errors.New("not available")

func (x *Examination) openStored(ctx context.Context) *stored {
	s := &stored{Examination: x}
	s.open = sync.OnceValues(func() (*db.DB, error) {
		settings := db.Config{
			URL: string(x.Config.DatabaseURL), DirectURL: string(x.Config.DatabaseDirectURL), DataDir: x.Config.DataDir,
			MaxConns: db.MinConns, KeepSchema: true, Prepare: s.box.Prepare,
		}
		if !settings.Exists() {
			return nil, nil //nolint:nilnil // the database does not exist yet
		}
		limited, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		return db.Open(limited, settings)
	})
	s.keys = sync.OnceValues(func() (map[string]int, error) {
		d, err := s.open()
		if err != nil || d == nil {
			return nil, errUnusable
		}
		limited, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		return s.findKeys(limited, d)
	})
	return s
}

func (s *stored) close() {
	if d, err := s.open(); err == nil && d != nil {
		d.Close()
	}
}

// checkDatabase reads the state of the database.
func (s *stored) checkDatabase(ctx context.Context) []Finding {
	d, err := s.open()
	if err == nil && d == nil {
		if !db.HasPostgres() {
			return []Finding{explainDatabase(db.ErrNoPostgres)}
		}
		return []Finding{{"database", OK, "the built-in PostgreSQL is created when the server first starts", ""}}
	}
	var state db.State
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		state, err = db.Inspect(limited, d.Pool, s.Now)
	}
	if err != nil {
		return []Finding{explainDatabase(err)}
	}
	return judgeDatabase(state, s.Config.DatabaseConns)
}

// explainDatabase names the reason why the database cannot be opened.
func explainDatabase(err error) Finding {
	f := Finding{Check: "database", Level: Error, Result: err.Error(), Fix: "start PostgreSQL, and allow connections from this machine to it"}
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	_, unknownHost := errors.AsType[*net.DNSError](err)
	switch {
	case refused && refusal.Code == "28P01":
		f.Result, f.Fix = "PostgreSQL refuses the password: "+refusal.Message, "correct the password in PARLEY_DATABASE_URL"
	case refused && strings.HasPrefix(refusal.Code, "28"):
		f.Result = "PostgreSQL refuses the user: " + refusal.Message
		f.Fix = "create the user, or permit it in pg_hba.conf"
	case refused && refusal.Code == "3D000":
		f.Result, f.Fix = refusal.Message, "create it: CREATE DATABASE … OWNER …"
	case refused && refusal.Code == "53300":
		f.Result = "PostgreSQL accepts no more connections: " + refusal.Message
		f.Fix = "raise max_connections, or lower PARLEY_DATABASE_CONNECTIONS of the nodes"
	case refused:
		f.Result, f.Fix = "PostgreSQL refuses: "+refusal.Message, "see the log of PostgreSQL"
	case unknownHost:
		f.Fix = "correct the host in PARLEY_DATABASE_URL"
	case errors.Is(err, db.ErrNoPostgres):
		f.Fix = "install PostgreSQL 14 or later, or set PARLEY_DATABASE_URL"
	case errors.Is(err, context.DeadlineExceeded):
		f.Result = "the database did not answer within 5 s"
	}
	return f
}

// maxSkew is the difference of clocks above which leases, tokens and rules of calling hours become wrong.
const maxSkew = 2 * time.Second

// judgeDatabase checks the state of the database. conns is the number of connections of a node.
func judgeDatabase(s db.State, conns int) (found []Finding) {
	add := func(level Level, result, fix string) { found = append(found, Finding{"database", level, result, fix}) }
	if s.Major < db.MinVersion {
		add(Error, fmt.Sprintf("PostgreSQL %d is too old", s.Major), fmt.Sprintf("upgrade to PostgreSQL %d or later", db.MinVersion))
	}
	switch {
	case s.Replica:
		add(Error, "the server is a standby, which accepts no writes", "set PARLEY_DATABASE_URL to the primary")
	case s.ReadOnly:
		add(Error, "the database is read-only", "set default_transaction_read_only to off, or free disk space of PostgreSQL")
	case !s.CanMigrate && s.Schema < s.Want:
		add(Error, fmt.Sprintf("the user %s may not create tables in the database %s", s.User, s.Database),
			fmt.Sprintf("GRANT CREATE ON SCHEMA public TO %s, or make it the owner of the database", s.User))
	}
	switch {
	case s.Schema == 0:
		add(Warning, "the database "+s.Database+" has no tables yet", "start parley serve, which creates them")
	case s.Schema < s.Want:
		add(Warning, fmt.Sprintf("the schema has version %d, this program needs %d", s.Schema, s.Want),
			"start parley serve, which updates the schema (docs/upgrading.md)")
	case s.Schema > s.Want:
		add(Warning, fmt.Sprintf("the schema has version %d, newer than the %d of this program", s.Schema, s.Want), "upgrade this program")
	}
	// A server opens one more connection for notifications.
	nodes := max(1, s.Nodes)
	if need := nodes * (conns + 1); need > s.MaxConns {
		add(Error, fmt.Sprintf("%d nodes open up to %d connections; PostgreSQL accepts %d", nodes, need, s.MaxConns),
			"raise max_connections, or lower PARLEY_DATABASE_CONNECTIONS")
	}
	if skew := s.Skew.Abs(); skew > maxSkew+s.Uncertainty {
		way := "behind"
		if s.Skew < 0 {
			way = "ahead of"
		}
		add(Error, fmt.Sprintf("the clock of this machine is %v %s that of the database", skew.Round(100*time.Millisecond), way),
			"synchronize both clocks by NTP, with chrony or systemd-timesyncd")
	}
	if len(found) == 0 {
		add(OK, fmt.Sprintf("PostgreSQL %d, schema %d, writable; %d connections, of which %d nodes open up to %d",
			s.Major, s.Schema, s.MaxConns, nodes, nodes*(conns+1)), "")
	}
	return found
}

// findKeys loads the keys into the box, and returns how many secrets of the database each missing key encrypts.
func (s *stored) findKeys(ctx context.Context, d *db.DB) (missing map[string]int, err error) {
	from := secretbox.Source{Keys: s.Config.SealKey}
	if s.Config.DatabaseURL == "" {
		from.File = filepath.Join(s.Config.DataDir, "seal.key")
	}
	if missing, err = secretbox.Used(ctx, d.Pool); err != nil {
		return nil, err
	}
	keys, err := from.Find(ctx, d.Pool)
	if errors.Is(err, secretbox.ErrNoKey) {
		return missing, nil
	}
	if err != nil {
		return nil, err
	}
	s.box.SetKeys(keys)
	for _, k := range keys {
		delete(missing, k.ID)
	}
	return missing, nil
}

// checkSealKey checks that the keys of this machine decrypt the secrets of the database.
func (s *stored) checkSealKey(context.Context) []Finding {
	missing, err := s.keys()
	switch {
	case errors.Is(err, errUnusable):
		return nil // checkDatabase reports the cause
	case err != nil:
		return []Finding{{"seal key", Warning, fmt.Sprintf("not checked: %v", err), "correct the errors of the database first"}}
	}
	for id, n := range missing {
		f := Finding{Check: "seal key", Level: Error, Fix: "set PARLEY_SEAL_KEY to the value that the other nodes have"}
		f.Result = fmt.Sprintf("PARLEY_SEAL_KEY lacks the key %s, which encrypts %d secrets of the database", id, n)
		if s.Config.DatabaseURL == "" {
			f.Result = fmt.Sprintf("seal.key in PARLEY_DATA_DIR is not the key %s, which encrypts %d secrets of the database", id, n)
			f.Fix = "restore seal.key from a backup"
		}
		return []Finding{f}
	}
	if s.Config.SealKey == "" && s.Config.DatabaseURL != "" {
		return []Finding{{
			"seal key", Warning, "PARLEY_SEAL_KEY is not set: the key that encrypts secrets is stored in the same database",
			"set PARLEY_SEAL_KEY on all nodes (docs/configuration.md, Secrets)",
		}}
	}
	return []Finding{{"seal key", OK, "the keys decrypt all secrets of the database", ""}}
}

// usable returns the database if its secrets can be read; nil otherwise.
func (s *stored) usable() *db.DB {
	missing, err := s.keys()
	if err != nil || len(missing) > 0 {
		return nil
	}
	d, _ := s.open() // keys fails if open does
	return d
}

// checkTrunks sends OPTIONS to each trunk of the database and of the file.
func (s *stored) checkTrunks(ctx context.Context) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	all := s.fileTrunks()
	if d := s.usable(); d != nil {
		have, err := trunks.All(ctx, d.Pool)
		if err != nil {
			return []Finding{{"trunk", Warning, fmt.Sprintf("not checked: %v", err), "correct the errors of the database first"}}
		}
		all = append(all, have...)
	} else if s.fileName == "" {
		return nil // other checks report the cause
	}
	lines := make([]media.Trunk, len(all))
	for n, t := range all {
		lines[n] = t.MediaTrunk()
		lines[n].Register = false // a second registration could replace that of the server
	}
	reasons, err := s.ProbeTrunks(ctx, lines)
	if err != nil {
		return []Finding{{"trunk", Error, fmt.Sprintf("failed to open a SIP socket: %v", err), "correct PARLEY_SIP_ADDR"}}
	}
	for n, t := range all {
		found = append(found, judgeTrunk(t, reasons[n]))
	}
	if len(all) == 0 && s.fileName == "" {
		found = append(found, Finding{"trunk", Warning, "no trunk exists", "add one to the operator's file: parley apply"})
	}
	return found
}

// fileTrunks returns the trunks of the file, except those with a placeholder as proxy.
func (s *stored) fileTrunks() (all []trunks.Trunk) {
	for _, o := range s.file.Organizations {
		for _, t := range o.Trunks {
			if known := t.Stored(); known.Proxy != "" && !control.HasPlaceholder(known.Proxy) {
				all = append(all, known)
			}
		}
	}
	return all
}

// judgeTrunk interprets the reason why a trunk does not answer; nil means that it answers.
func judgeTrunk(t trunks.Trunk, reason error) Finding {
	if reason == nil {
		return Finding{"trunk", OK, fmt.Sprintf("%s (%s) answers OPTIONS", t.Name, t.Proxy), ""}
	}
	f := Finding{Check: "trunk", Level: Error}
	f.Result = fmt.Sprintf("%s (%s): %s", t.Name, t.Proxy, oneLine(reason))
	f.Fix = "check the trunk's proxy, the firewall, and that the carrier permits the address of this machine"
	if _, unknownHost := errors.AsType[*net.DNSError](reason); unknownHost {
		f.Fix = "correct the host in the trunk's proxy, or the DNS server of this machine (/etc/resolv.conf)"
	}
	return f
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// checkBucket writes, reads, lists and deletes a file.
func (x *Examination) checkBucket(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	b, err := x.Bucket()
	doing := "open"
	if folder, ok := b.(*recording.Folder); ok {
		if isMissing(folder.Dir) {
			return []Finding{{"bucket", OK, folder.Dir + " is created with the first recording", ""}}
		}
	}
	if err == nil {
		doing, err = tryBucket(ctx, b)
	}
	return []Finding{judgeBucket(doing, err, recording.IsShared(x.Config.BucketURL))}
}

// tryBucket returns what it was doing when an error occurred.
func tryBucket(ctx context.Context, b recording.Bucket) (doing string, err error) {
	key, content := "doctor-"+rand.Text(), []byte("written by parley doctor")
	if err = b.Put(ctx, key, bytes.NewReader(content)); err != nil {
		return "write", err
	}
	defer func() {
		if fault := b.Delete(ctx, key); fault != nil && err == nil {
			doing, err = "delete", fault
		}
	}()
	f, err := b.Open(ctx, key)
	if err != nil {
		return "read", err
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("the bucket returned other bytes than were written")
	}
	if err != nil {
		return "read", err
	}
	for _, err = range b.List(ctx, key) {
		return "list", err
	}
	return "list", errors.New("the file that was written is missing")
}

func judgeBucket(doing string, err error, shared bool) Finding {
	f := Finding{Check: "bucket", Level: Error, Result: fmt.Sprintf("failed to %s a file: %v", doing, err)}
	switch code := s3.ErrorCode(err); {
	case err == nil:
		f.Level, f.Result = OK, "a file was written, read, listed and deleted"
	case code == "SignatureDoesNotMatch" || code == "InvalidAccessKeyId":
		f.Result, f.Fix = "the bucket refuses the access key: "+code, "correct PARLEY_S3_ID and PARLEY_S3_SECRET"
	case code == "AccessDenied":
		f.Fix = "permit s3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket for the access key"
	case code == "NoSuchBucket":
		f.Fix = "create the bucket, or correct PARLEY_BUCKET_URL"
	case shared:
		f.Fix = "start the server of the bucket, allow connections to it, or correct endpoint in PARLEY_BUCKET_URL"
	default:
		f.Fix = "grant this user the right to write there, or correct PARLEY_BUCKET_URL"
	}
	return f
}
