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
// of it; repeated numbers are counted among those alone.
func Read(ctx context.Context, d *desk.Desk, orgID string, f *desk.File) (Preview, error) {
	var p Preview
	org, err := d.Store.Organization(ctx, d.Pool, orgID)
	if err != nil {
		return p, err
	}
	pkg, err := d.Markets.Package(ctx, d.Pool, org.Market, org.Rules)
	if err != nil {
		return p, err
	}
	raw, err := rows.FromFile(f, f.Size)
	if err != nil {
		return p, err
	}
	n := 0
	for rec, err := range rows.First(raw, previewed+1) {
		if err != nil {
			return p, err
		}
		if n++; n > shownRows {
			continue
		}
		if p.Names == nil {
			for _, c := range rec.Cells {
				p.Names = append(p.Names, c.Column)
			}
		}
		line := map[string]string{}
		for _, c := range rec.Cells {
			line[c.Column] = c.Text
		}
		cells := make([]string, len(p.Names))
		for i, name := range p.Names {
			cells[i] = line[name]
		}
		p.Cells = append(p.Cells, cells)
	}
	if p.More = n > previewed; pkg == nil {
		return p, nil
	}
	source, err := f.Source()
	if err == nil {
		p.List, err = rows.Check(rows.First(source, previewed), rows.Options{Market: pkg, Duplicates: rows.KeepFirst, Zone: zone})
	}
	return p, err
}

// zone refuses the name of no time zone.
func zone(name string) error {
	_, err := control.Zone(name)
	return err
}
