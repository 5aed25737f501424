package uploads

import (
	"context"

	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
)

// A Preview is how the first rows of a file would be read. Whether they are listed
// is not asked.
type Preview struct {
	Names []string   // of the columns, as the file has them
	Cells [][]string // of the first rows, as they came
	List  *rows.List // of the rows that were looked at; nil where the organization has no market package
	More  bool       // the file has more
}

// previewed is how many rows a preview reads, shownRows of how many it has cells.
const (
	previewed = 1000
	shownRows = 8
)

// Read reads the first thousand rows of a file as a campaign would that is made
// of it; repeated numbers are counted among those alone. As says what columns are
// to be taken for (desk.File.Columns), by all their names; nil leaves them as they
// are. The file is gone through once: spreadsheets take long.
func Read(ctx context.Context, d *desk.Desk, orgID string, f *desk.File, as func(names []string) map[string]string) (Preview, error) {
	var p Preview
	org, err := d.Store.Organization(ctx, d.Pool, orgID)
	if err != nil {
		return p, err
	}
	pkg, err := d.Markets.Package(ctx, d.Pool, org.Market, org.Rules)
	if err != nil {
		return p, err
	}
	first, err := head(f, previewed+1)
	if err != nil {
		return p, err
	}
	p.Names, p.Cells = table(first[:min(len(first), shownRows)])
	if p.More = len(first) > previewed; pkg == nil {
		return p, nil
	}
	source := rows.First(rows.Of(first), previewed)
	if as != nil {
		source = rows.Renamed(source, as(p.Names))
	}
	p.List, err = rows.Check(source, rows.Options{Market: pkg, Duplicates: rows.KeepFirst, Zone: zone})
	return p, err
}

// Names are those of a file's columns.
func Names(f *desk.File) ([]string, error) {
	first, err := head(f, 1)
	names, _ := table(first)
	return names, err
}

// head are the first n records of a file.
func head(f *desk.File, n int) ([]rows.Record, error) {
	raw, err := rows.FromFile(f, f.Size)
	if err != nil {
		return nil, err
	}
	var all []rows.Record
	for rec, err := range rows.First(raw, n) {
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return all, nil
}

// table are the names of the columns of records, and their cells.
func table(all []rows.Record) (names []string, cells [][]string) {
	if len(all) == 0 {
		return nil, nil
	}
	for _, c := range all[0].Cells {
		names = append(names, c.Column)
	}
	for _, rec := range all {
		line := map[string]string{}
		for _, c := range rec.Cells {
			line[c.Column] = c.Text
		}
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = line[name]
		}
		cells = append(cells, row)
	}
	return names, cells
}

// zone refuses the name of no time zone.
func zone(name string) error {
	_, err := control.Zone(name)
	return err
}
