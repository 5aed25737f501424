package uploads

import (
	"context"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
)

// A Preview shows how the first rows of a file would be read. It does not screen them.
type Preview struct {
	Names []string          // names of the columns, as in the file
	Cells [][]string        // cells of the first rows, as in the file
	List  *contactfile.List // result of the first rows; nil if the organization has no market
	More  bool              // the file has more rows
}

// Rows that a preview reads, and rows whose cells it returns.
const (
	previewRows = 1000
	shownRows   = 8
)

// ReadPreview reads the first thousand rows of a file as a campaign would. It counts duplicates only among these
// rows. mapping returns service.File.Columns for the column names; nil keeps the names. ReadPreview reads the file
// only once, because reading a spreadsheet is slow.
func ReadPreview(ctx context.Context, d *service.Service, orgID string, f *service.File,
	mapping func(names []string) map[string]string,
) (Preview, error) {
	var p Preview
	org, err := d.Store.Organization(ctx, d.Pool, orgID)
	if err != nil {
		return p, err
	}
	pkg, err := d.Markets.Package(ctx, d.Pool, org.Market, org.Rules)
	if err != nil {
		return p, err
	}
	names, first, err := readHead(f, previewRows+1)
	if err != nil {
		return p, err
	}
	p.Names, p.Cells = names, tableCells(names, first[:min(len(first), shownRows)])
	if p.More = len(first) > previewRows; pkg == nil {
		return p, nil
	}
	source := contactfile.Head(contactfile.FromRecords(first), previewRows)
	if mapping != nil {
		source = contactfile.Rename(source, mapping(p.Names))
	}
	p.List, err = contactfile.Check(source, contactfile.Options{Market: pkg, Duplicates: contactfile.KeepFirst, Zone: checkZone})
	return p, err
}

// ColumnNames returns the column names of a file.
func ColumnNames(f *service.File) ([]string, error) {
	names, _, err := readHead(f, 1)
	return names, err
}

// readHead returns the column names from the header line, and the first n records.
func readHead(f *service.File, n int) (names []string, first []contactfile.Record, err error) {
	t, err := contactfile.Open(f, f.Size)
	if err != nil {
		return nil, nil, err
	}
	for rec, err := range contactfile.Head(t.Source, n) {
		if err != nil {
			return nil, nil, err
		}
		first = append(first, rec)
	}
	return t.Names, first, nil
}

// tableCells returns the cells of records in the order of the names.
func tableCells(names []string, all []contactfile.Record) (cells [][]string) {
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
	return cells
}

func checkZone(name string) error {
	_, err := control.Zone(name)
	return err
}
