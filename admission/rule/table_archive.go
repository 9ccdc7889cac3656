package rule

import "slices"

// archiveRules are the rules of archives (corpus/EXPECT.md, design.md 2 and 9). What lets two readers see two
// trees, or makes them differ on whether there is a tree at all, is fixed; what is only stricter than the clients
// may be softened.
var archiveRules = slices.Concat(archiveFormRules, archivePathRules, archiveNameRules, archiveContentRules)

var archiveGates = []Gate{Publish, Launch}

// archiveFixed is a rule of ours that can't be softened.
func archiveFixed(id ID, title, fix, source string, example Example) Info {
	return Info{ID: id, Example: example, Title: title, Fix: fix, Source: source, Gates: archiveGates, Ours: true, Fixed: true}
}

// archiveSoft is a rule of ours that an administrator may turn into a warning.
func archiveSoft(id ID, title, fix, source string, example Example) Info {
	return Info{ID: id, Example: example, Title: title, Fix: fix, Source: source, Gates: archiveGates, Ours: true}
}

// tooLarge is a rule whose breach is answered as one of size.
func tooLarge(i Info) Info {
	i.Class = TooLarge
	return i
}

const (
	packAgain  = "Make the archive with `sf plugin pack DIR`."
	sendAgain  = "Send the archive again; if that does not help, make it again with `sf plugin pack DIR`."
	renameFile = "Rename the file."
)

// archiveFormRules judge the archive as bytes: gzip, tar headers and the end.
var archiveFormRules = []Info{
	archiveFixed("archive.empty", "An archive holds at least one file.", "Pack the folder that holds plugin.yaml: `sf plugin pack DIR`.", "EXPECT.md t37",
		told(`The archive holds no file.`)),
	archiveFixed("archive.gzip.header", "An archive is a tar file in one gzip stream.", packAgain, "design.md 2",
		told(`The archive is a zip.`)),
	archiveFixed("archive.gzip.truncated", "The gzip stream is whole.", sendAgain, "EXPECT.md z05",
		told(`The upload ended early.`)),
	archiveFixed("archive.gzip.corrupt", "The gzip stream decodes, and its checksum and length agree.", sendAgain, "EXPECT.md z",
		told(`One byte of the compressed data changed on the way.`)),
	archiveFixed("archive.gzip.trailing", "Nothing follows the one gzip stream.", packAgain, "EXPECT.md z03",
		told(`A second gzip stream follows the first.`)),
	archiveFixed("archive.header.checksum", "Every member has a tar header whose checksum agrees.", packAgain, "EXPECT.md t35",
		told(`A header's checksum is not the sum of its bytes.`)),
	archiveFixed("archive.header.magic", "Every header is of the POSIX (ustar, PAX) or GNU format.", packAgain, "EXPECT.md t49",
		told(`The archive is of the old V7 format.`)),
	archiveFixed("archive.header.number", "The numbers of a header are written in octal, as every reader reads them.", packAgain, "EXPECT.md t29",
		told(`A size is written in base 256.`)),
	archiveFixed("archive.header.field", "Nothing stands in a header where one reader looks and another does not.", packAgain, "EXPECT.md",
		told(`Bytes stand behind the NUL that ends a name.`)),
	archiveFixed("archive.header.size", "A member has one size, and links have no data.", packAgain, "EXPECT.md t23",
		told(`The PAX header gives another size than the tar header.`)),
	archiveFixed("archive.header.extended", "PAX headers and GNU long names are well formed and belong to one member.", packAgain, "EXPECT.md t23, t25",
		told(`Two PAX headers precede one member.`)),
	archiveSoft("archive.header.key", "PAX headers hold the ordinary keys only.", "Make the archive without extended attributes: `sf plugin pack DIR`.", "EXPECT.md c03",
		told(`A PAX header has the key SCHILY.xattr.user.note.`)),
	archiveFixed("archive.header.padding", "The rest of a member's last block is zero.", packAgain, "EXPECT.md t33",
		told(`Bytes other than zero fill up a member's last block.`)),
	archiveFixed("archive.end.missing", "Two zero blocks end the archive.", packAgain, "EXPECT.md t31",
		told(`The archive ends without zero blocks.`)),
	archiveFixed("archive.end.truncated", "The archive is whole.", sendAgain, "EXPECT.md t31",
		told(`The archive ends in the middle of a member.`)),
	archiveFixed("archive.end.data", "Only zeros follow the end of the archive.", packAgain, "EXPECT.md t33",
		told(`Another archive follows the end of the first.`)),
	archiveFixed("archive.type.member", "Members are regular files, or links to them.", "Remove devices, FIFOs and the like.", "EXPECT.md t09, t11, t47",
		told(`A member is a device.`)),
	archiveFixed("archive.type.folder", "An archive has no members for folders.", packAgain, "EXPECT.md",
		told(`The archive was made with tar czf, which writes folders.`)),
	archiveFixed("archive.type.sparse", "Files are stored whole, not sparse.", packAgain, "EXPECT.md",
		told(`The archive was made with tar --sparse.`)),
}

// archivePathRules judge a member's path as a way through folders.
var archivePathRules = []Info{
	archiveFixed("archive.path.empty", "Every member has a name.", packAgain, "EXPECT.md t39",
		told(`A member's name is empty.`)),
	archiveFixed("archive.path.absolute", "Paths are relative.", packAgain, "EXPECT.md t02",
		told(`A member is called /etc/passwd.`)),
	archiveFixed("archive.path.parent", "No path has an element \"..\".", packAgain, "EXPECT.md t01, t03",
		told(`A member is called ../x.`)),
	archiveFixed("archive.path.element", "Paths are clean: no leading \"./\", no \"//\", no \"/\" at the end.", packAgain, "EXPECT.md t15, t19",
		told(`A member is called ./main.py.`)),
	archiveFixed("archive.duplicate.path", "No path comes twice.", packAgain, "EXPECT.md t13",
		told(`main.py comes twice.`)),
	archiveFixed("archive.duplicate.folder", "No path is both a file and a folder.", renameFile, "EXPECT.md t21",
		told(`data is a file, and data/x another.`)),
	archiveFixed("archive.link.outside", "Links stay inside the pack.", "Replace the link by the file that it points at.", "EXPECT.md t05, t07; design.md 9",
		told(`A symbolic link leads to ../../etc.`)),
	archiveFixed("archive.link.target", "Links lead to a regular file of the pack.", "Replace the link by the file that it points at, or remove it.", "design.md 2",
		told(`A symbolic link leads to a file that is not there.`)),
	{
		ID: "archive.link.order", Title: "A hard link comes after the file that it names.", Source: "packs.md 1.6", Gates: archiveGates,
		Fix: packAgain + " As it is, the clients' tarfile can't unpack it.", Ours: true, Severity: Warn,
		Example: told(`A hard link b to a comes before a.`),
	},
}

// archiveNameRules judge names: characters, what two systems read differently, what is reserved.
var archiveNameRules = []Info{
	archiveFixed("archive.name.utf8", "Names are UTF-8.", renameFile, "packs.md 1.1, 13.6",
		told(`A name is written in Latin-1.`)),
	archiveFixed("archive.name.character", "Names hold no control and no text-direction characters.", renameFile, "EXPECT.md t25, t43",
		told(`A name holds a line break.`)),
	archiveFixed("archive.name.backslash", "Names hold no backslash.", renameFile, "design.md 2",
		told(`A member is called data\x.`)),
	archiveFixed("archive.name.dash", "No file is called \"-\".", renameFile, "design.md 2",
		told(`A member is called -.`)),
	archiveFixed("archive.name.dots", "No name begins with two dots: Python releases differ on its suffix, so on the digest.", renameFile, "packs.md 1.2, 13.6",
		told(`A member is called ..x.`)),
	archiveFixed("archive.name.excluded", "An archive holds nothing that the digest leaves out.", "Leave it out of the archive: `sf plugin pack DIR` does.", "design.md 2; packs.md 1.5",
		told(`The archive holds __pycache__/main.cpython-311.pyc.`)),
	archiveFixed("archive.name.whiteout", "No name begins with \".wh.\", which image tools read as a deletion.", renameFile, "EXPECT.md t41",
		told(`A member is called .wh.main.py.`)),
	archiveFixed("archive.name.collision", "No two names are equal but for case, Unicode form or what a file system drops.", renameFile, "EXPECT.md t17; packs.md 13.6",
		told(`The archive holds README.md and readme.md.`)),
	archiveSoft("archive.name.option", "No path begins with \"-\", which commands read as an option.", renameFile, "design.md 2",
		told(`A member is called -rf/x.`)),
	archiveSoft("archive.name.trailing", "No name ends in a dot or a space.", renameFile, "packs.md 13.6",
		told(`A member is called notes. with a dot at its end.`)),
	archiveSoft("archive.name.windows", "Names are possible on Windows: no device name, none of <>:\"|?*.", renameFile, "design.md 2",
		told(`A member is called aux.txt.`)),
	archiveSoft("archive.name.invisible", "Names hold no invisible characters.", renameFile, "design.md 2",
		told(`A name holds a zero-width space.`)),
	archiveSoft("archive.name.bare", "No file's whole name is a suffix of code, such as \".py\".", renameFile, "packs.md 13.6",
		told(`A member is called src/.py.`)),
}

// archiveContentRules are the limits, and what a directory leaves out.
var archiveContentRules = []Info{
	tooLarge(archiveFixed("archive.limit.compressed", "An archive has at most 32 MiB.", "Take large files out of the pack; publish them as a dataset.", "package limit",
		told(`The archive has 40 MiB.`))),
	tooLarge(archiveFixed("archive.limit.unpacked", "A pack has at most 128 MiB unpacked, links resolved.", "Take large files out of the pack; publish them as a dataset.", "package limit",
		told(`The files have 200 MiB.`))),
	tooLarge(archiveFixed("archive.limit.files", "A pack has at most 10,000 files.", "Put many small files into one.", "EXPECT.md t51",
		told(`The archive holds 10,001 files.`))),
	archiveFixed("archive.limit.path", "A path has at most 1,024 bytes.", "Shorten the path.", "EXPECT.md t45",
		told(`A path has 1,100 bytes.`)),
	archiveFixed("archive.limit.component", "An element of a path has at most 255 bytes.", "Shorten the name.", "package limit",
		told(`A file's name has 300 bytes.`)),
	tooLarge(archiveFixed("archive.limit.ratio", "Beyond 16 MiB an archive unpacks to at most 100 times its size.", "Pack the directory with `sf plugin pack` or publish it with `sf plugin publish`: they compress less where files repeat themselves.", "EXPECT.md z01; design.md 9",
		told(`An archive of 100 KiB unpacks to 64 MiB.`))),
	archiveFixed("archive.limit.header", "A PAX header or GNU long name has at most 64 KiB.", packAgain, "EXPECT.md t45",
		told(`A PAX header has 100 KiB.`)),
	archiveFixed("archive.limit.padding", "At most 1 MiB of zeros follows the end of the archive.", packAgain, "EXPECT.md",
		told(`2 MiB of zeros follow the end of the archive.`)),
	archiveFixed("archive.limit.faults", "An archive with 100 faults is read no further.", "Mend the faults listed and check again.", "design.md 8",
		told(`The archive breaks rules in a hundred places.`)),
	{
		ID: "archive.left-out", Title: "What the digest does not count is left out of the pack.", Source: "design.md 2; packs.md 1.2, 1.3", Gates: archiveGates,
		Fix: "Nothing, unless the pack needs it: then make it a regular file under another name.", Ours: true, Severity: Warn,
		Example: told(`The folder holds __pycache__.`),
	},
}
