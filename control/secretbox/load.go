package secretbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Source describes the source of a service's keys.
type Source struct {
	// Keys are the operator's keys. If they are set, File is not used.
	Keys media.Secret
	// File is the name of the file that holds a generated key. Load creates the file if it does not exist. If File is
	// empty, the key is stored in the database, next to the secrets that it protects, because other processes may share
	// the database.
	File string
	Log  *slog.Logger
}

// Load sets the keys of the box and checks that they decrypt all secrets in the database. If a secret is not encrypted
// with the first key, Load encrypts it again with that key.
func (b *Box) Load(ctx context.Context, pool *pgxpool.Pool, s Source) error {
	text, err := s.text(ctx, pool)
	if err != nil {
		return fmt.Errorf("seal keys: %w", err)
	}
	keys, err := Parse(text)
	if err != nil {
		return fmt.Errorf("seal keys: %w", err)
	}
	if err = Rotate(ctx, pool, keys); err != nil {
		return fmt.Errorf("seal keys: %w", err)
	}
	b.SetKeys(keys)
	return nil
}

// ErrNoKey is returned if the keys are not in the settings and no key was generated yet.
var ErrNoKey = errors.New("no key was generated yet")

// Find returns the keys that Load would use. It generates none.
func (s Source) Find(ctx context.Context, q db.Querier) (Keys, error) {
	text, err := s.read(ctx, q)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// read returns the text of the keys, or ErrNoKey.
func (s Source) read(ctx context.Context, q db.Querier) (media.Secret, error) {
	if s.Keys != "" {
		return s.Keys, nil
	}
	var text []byte
	var err error
	if s.File != "" {
		text, err = os.ReadFile(s.File)
	} else {
		err = q.QueryRow(ctx, "SELECT value FROM shared_keys WHERE name = 'seal'").Scan(&text)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoKey
	}
	return media.Secret(text), err
}

// text returns the text of the keys. It generates a key if there is none. All processes get the same key, even if they
// generate one at the same time.
func (s Source) text(ctx context.Context, q db.Querier) (media.Secret, error) {
	if s.Keys == "" && s.File == "" && s.Log != nil {
		s.Log.WarnContext(ctx, "the seal key is stored in the database itself; set PARLEY_SEAL_KEY")
	}
	text, err := s.read(ctx, q)
	if !errors.Is(err, ErrNoKey) {
		return text, err
	}
	if s.File != "" {
		err = createFile(s.File)
	} else {
		_, err = q.Exec(ctx, "INSERT INTO shared_keys (name, value) VALUES ('seal', $1) ON CONFLICT DO NOTHING", []byte(Generate()))
	}
	if err != nil {
		return "", err
	}
	return s.read(ctx, q)
}

// createFile writes a new key to a file, unless it exists.
func createFile(name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".seal-") // creates the file with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(string(Generate()) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), name); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Column is a column that contains encrypted secrets.
type Column struct{ Table, Name string }

// Columns returns all columns of the database that contain secrets.
func Columns() []Column {
	return []Column{
		{"trunks", "password"},
		{"webhook_endpoints", "secret"},
		{"webhook_endpoints", "previous_secret"},
		{"agents", "secrets"},
		{"agent_versions", "secrets"},
		{"signing_keys", "secret"},
		{"operators", "totp_secret"},
		{"provider_endpoints", "secret"},
		{"provider_endpoints", "header_secrets"},
	}
}

// Rotate encrypts all secrets with the first key.
func Rotate(ctx context.Context, pool *pgxpool.Pool, keys Keys) error {
	return db.Tx(ctx, pool, func(tx pgx.Tx) error {
		for _, c := range Columns() {
			if err := c.reseal(ctx, tx, keys); err != nil {
				return fmt.Errorf("%s of %s: %w", c.Name, strings.TrimSuffix(c.Table, "s"), err)
			}
		}
		return nil
	})
}

// Used returns how many secrets each key encrypts, by the key's id.
func Used(ctx context.Context, q db.Querier) (map[string]int, error) {
	used := map[string]int{}
	for _, c := range Columns() {
		sql := fmt.Sprintf("SELECT split_part(substr(%[1]s, $1), ':', 1), count(*) FROM %[2]s WHERE %[1]s <> '' GROUP BY 1", c.Name, c.Table)
		rows, err := q.Query(ctx, sql, len(prefix)+1)
		if err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		}
		var id string
		var n int
		if _, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error { used[id] += n; return nil }); err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		}
	}
	return used, nil
}

func (c Column) reseal(ctx context.Context, tx pgx.Tx, keys Keys) error {
	sql := fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %[1]s <> '' AND NOT starts_with(%[1]s, $1)", c.Name, c.Table)
	all, err := db.Collect(ctx, tx, "", pgx.RowTo[string], sql, prefix+keys[0].ID+":")
	if err != nil {
		return err
	}
	for _, old := range all {
		plain, err := keys.Open(old)
		if err != nil {
			return err
		}
		text, err := keys.Seal(plain)
		if err != nil {
			return err
		}
		sql := fmt.Sprintf("UPDATE %s SET %s = $2 WHERE %[2]s = $1", c.Table, c.Name)
		if _, err = tx.Exec(ctx, sql, old, text); err != nil {
			return err
		}
	}
	return nil
}
