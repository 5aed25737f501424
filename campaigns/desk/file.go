package desk

import (
	"io"

	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
)

// A File is one of rows: a spreadsheet or separated values.
type File struct {
	io.ReaderAt

	Size int64
	// Columns says what columns are to be taken for, by their names; one that is
	// to be "" is left out. Those that it does not name are what they are called.
	Columns map[string]string
}

// Source is the rows of the file, its columns as they are to be taken.
func (f *File) Source() (rows.Source, error) {
	source, err := rows.FromFile(f, f.Size)
	if err == nil && f.Columns != nil {
		source = rows.Renamed(source, f.Columns)
	}
	return source, err
}

// zone refuses the name of no time zone.
func zone(name string) error {
	_, err := control.Zone(name)
	return err
}

func noMarket() error {
	return control.Refuse(control.CodeMarketNotInstalled, "the organization has no market package, or not that of the campaign: its contacts cannot be screened")
}
