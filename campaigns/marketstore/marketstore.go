// Package marketstore stores market rules: those built into the program, and those
// that operators installed in the database.
package marketstore

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/control/db"
)

// A Store finds market packages and caches them. It is safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	read map[string]*market.Package // packages that were read, by code and version
}

// Package returns the rules of a market: an installed version, or the built-in one if
// version is empty. It returns nil if code is empty.
func (p *Store) Package(ctx context.Context, q db.Querier, code, version string) (*market.Package, error) {
	if code == "" {
		return nil, nil //nolint:nilnil // no market
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := code + " " + version
	if found := p.read[key]; found != nil {
		return found, nil
	}
	var found *market.Package
	var err error
	if version == "" {
		found, err = market.Load(code)
	} else {
		found, err = load(ctx, q, code, version)
	}
	if err != nil {
		return nil, err
	}
	if p.read == nil {
		p.read = map[string]*market.Package{}
	}
	p.read[key] = found
	return found, nil
}

func load(ctx context.Context, q db.Querier, code, version string) (*market.Package, error) {
	var files map[string]string
	if err := q.QueryRow(ctx, "SELECT files FROM market_packages WHERE code = $1 AND version = $2", code, version).Scan(&files); err != nil {
		return nil, fmt.Errorf("market package %s: %w", version, err)
	}
	found, err := market.Read(files)
	if err != nil {
		return nil, fmt.Errorf("market package %s: %w", version, err)
	}
	return found, nil
}

// maxFileSize bounds a file of a package, in bytes.
const maxFileSize = 4 << 20

// Open reads the files of a package in a folder or a zip file.
func Open(name string) (map[string]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readFiles(os.DirFS(name))
	}
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a folder nor a zip file: %w", name, err)
	}
	defer z.Close() //nolint:errcheck // only read
	return readFiles(z)
}

// readFiles reads the files of a package from the top folder, or from the only subfolder that has a package.yaml.
func readFiles(from fs.FS) (map[string]string, error) {
	at, err := fs.Glob(from, "*/package.yaml")
	if err != nil {
		return nil, err
	}
	dir := "."
	if _, missing := fs.Stat(from, "package.yaml"); missing != nil && len(at) == 1 {
		dir = path.Dir(at[0])
	}
	files := map[string]string{}
	for _, name := range market.FileNames() {
		f, err := from.Open(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(text) > maxFileSize {
			return nil, fmt.Errorf("%s has more than %d bytes", name, maxFileSize)
		}
		files[name] = string(text)
	}
	return files, nil
}

// digest returns the SHA-256 of the files of a package.
func digest(files map[string]string) string {
	h := sha256.New()
	for _, name := range market.FileNames() {
		fmt.Fprintf(h, "%s %d\n%s", name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrVersion is returned if another package has the version.
var ErrVersion = errors.New("another package already has this version: choose a new version")

// Install stores a package. Installing the same package again has no effect.
func Install(ctx context.Context, q db.Querier, files map[string]string, by string) (*market.Package, error) {
	p, err := market.Read(files)
	if err != nil {
		return nil, err
	}
	if builtIn, fault := market.Load(p.Code); fault == nil && builtIn.Version == p.Version && digest(market.Files(p.Code)) != digest(files) {
		return nil, fmt.Errorf("%s: %w", p.Version, ErrVersion)
	}
	sum, stored := digest(files), ""
	err = q.QueryRow(ctx, `
		WITH inserted AS (INSERT INTO market_packages (code, version, files, sha256, installed_by) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (code, version) DO NOTHING RETURNING sha256)
		SELECT sha256 FROM inserted UNION ALL SELECT sha256 FROM market_packages WHERE code = $1 AND version = $2 LIMIT 1`,
		p.Code, p.Version, files, sum, by).Scan(&stored)
	if err != nil {
		return nil, fmt.Errorf("market package: %w", err)
	}
	if stored != sum {
		return nil, fmt.Errorf("%s: %w", p.Version, ErrVersion)
	}
	return p, nil
}

// Assign sets the market rules of an organization: an installed version, or the
// built-in rules if version is empty.
func Assign(ctx context.Context, q db.Querier, orgID, code, version string) error {
	settings := map[string]any{"market": code, "market_rules": nil}
	if version != "" {
		settings["market_rules"] = map[string]string{"code": code, "version": version}
	}
	_, err := db.Exec(ctx, q, "organization", "UPDATE organizations SET settings = settings || $2 WHERE id = $1", orgID, settings)
	return err
}

// CountOtherMarkets counts the open campaigns of an organization that belong to a market other than code. They do not
// dial while the organization uses the market code.
func CountOtherMarkets(ctx context.Context, q db.Querier, orgID, code string) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM campaigns WHERE org_id = $1 AND market NOT IN ('', $2) AND status NOT IN ('completed', 'cancelled')`, orgID, code).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("campaigns: %w", err)
	}
	return n, nil
}

// An Info describes an available package.
type Info struct {
	Code, Version string
	BuiltIn       bool
	By            string
	At            time.Time
	UsedBy        []string // names of the organizations that use the package
}

// List returns the built-in and the installed packages.
func List(ctx context.Context, q db.Querier) ([]Info, error) {
	var all []Info
	for _, code := range market.Codes() {
		p, err := market.Load(code)
		if err != nil {
			return nil, err
		}
		k := Info{Code: code, Version: p.Version, BuiltIn: true}
		err = q.QueryRow(ctx, `
			SELECT coalesce(array_agg(name ORDER BY name), '{}') FROM organizations
			WHERE settings->>'market' = $1 AND settings->'market_rules'->>'code' IS DISTINCT FROM $1`, code).Scan(&k.UsedBy)
		if err != nil {
			return nil, fmt.Errorf("market packages: %w", err)
		}
		all = append(all, k)
	}
	installed, err := db.Collect(ctx, q, "market packages", pgx.RowToStructByPos[Info], `
		SELECT p.code, p.version, false, p.installed_by, p.installed_at, ARRAY(SELECT o.name FROM organizations o
			WHERE o.settings->>'market' = p.code AND o.settings->'market_rules' = jsonb_build_object('code', p.code, 'version', p.version) ORDER BY o.name)
		FROM market_packages p ORDER BY p.code, p.installed_at`)
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, installed), nil
}
