package service

import (
	"io"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/control"
)

// A File is a contact list: CSV or XLSX.
type File struct {
	io.ReaderAt

	Size int64
	// Columns maps column names to other names; "" drops a column. A column that is not
	// in the map keeps its name.
	Columns map[string]string
}

// Source returns the rows of the file with mapped columns.
func (f *File) Source() (contactfile.Source, error) {
	source, err := contactfile.FromFile(f, f.Size)
	if err == nil && f.Columns != nil {
		source = contactfile.Rename(source, f.Columns)
	}
	return source, err
}

func checkZone(name string) error {
	_, err := control.Zone(name)
	return err
}

func errNoMarket() error {
	return control.Refuse(control.CodeMarketNotInstalled,
		"the organization has no market rules, or not those of the campaign, so contacts cannot be screened")
}
