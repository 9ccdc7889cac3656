package rule

// publishOnly is the gate at which what the registry already holds is looked at.
var publishOnly = []Gate{Publish}

// publishRules are the rules of gate 1 beyond the pack itself: names, versions, claims (design.md 2, 3), and the
// shape of a pack's OCI manifest.
var publishRules = []Info{
	{
		ID: "publish.owner", Title: "A principal publishes only below its own name; an administrator anywhere.",
		Fix:    "Publish into your own namespace, or ask an administrator.",
		Source: "design.md 2", Gates: publishOnly, Class: Forbidden,
		Example: told(`bob publishes alice/grad-clip.`),
	},
	{
		ID: "publish.owner.reserved", Title: "Nobody publishes below a reserved owner.",
		Fix:    "Publish into the namespace of an account.",
		Source: "design.md 3, 9", Gates: publishOnly, Ours: true, Fixed: true, Class: Forbidden,
		Example: told(`An administrator publishes tuneplane/grad-clip.`),
	},
	{
		ID: "publish.kind.admin", Title: "Only administrators publish playbook and prompt packs.",
		Fix:    "Ask an administrator to publish the pack.",
		Source: "packs.md 3.1, wire.md 4.3", Gates: publishOnly, Class: Forbidden,
		Example: told(`An operator publishes a pack of the kind playbook.`),
	},
	{
		ID: "publish.kind.artifact", Title: "The artifact type names the kind that plugin.yaml names.",
		Fix:    "Push again with `sf plugin publish`, or set the artifact type of the kind.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The manifest is of the type of algorithms, plugin.yaml says kind: recipe.`),
	},
	{
		ID: "publish.kind.fixed", Title: "All versions of a pack are of one kind.",
		Fix:    "Publish under another name.",
		Source: "design.md 9", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`alice/grad-clip 1.0.0 is an algorithm, 1.1.0 is to be a recipe.`),
	},
	{
		ID: "publish.name", Title: "The pack's name in lower case is a repository name, and its owner is one too.",
		Fix:    "Choose a name of letters and digits with single '.', '_' and '-' between them.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`plugin.yaml says name: Grad..Clip, which is no repository name in lower case.`),
	},
	{
		ID: "publish.name.repository", Title: "A pack lies in the repository <owner>/<its name in lower case>.",
		Fix:    "Push to the repository that the message names, or correct the name in plugin.yaml.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`plugin.yaml says name: grad-clip, and the manifest is pushed to alice/clip.`),
	},
	{
		ID: "publish.name.taken", Title: "No two packs of an owner have names that differ only in case or in '-', '_' and '.'.",
		Fix:    "Publish under the name that exists, or choose a clearly different one.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`alice has grad-clip and publishes Grad_Clip.`),
	},
	{
		ID: "publish.version", Title: "The version can be a tag and is not reserved.",
		Fix:    "Write a version such as \"1.2.0\".",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`plugin.yaml says version: latest.`),
	},
	{
		ID: "publish.version.tag", Title: "The tag is the version that plugin.yaml names.",
		Fix:    "Push under the tag that the message names, or correct the version in plugin.yaml.",
		Source: "design.md 9", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`plugin.yaml says version: "1.0.0", and the tag is 1.0.`),
	},
	{
		ID: "publish.version.taken", Title: "A version is published once and never changes.",
		Fix:    "Raise the version in plugin.yaml.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`alice/grad-clip 1.0.0 is published and comes again with other bytes.`),
	},
	{
		ID: "publish.version.equivalent", Title: "No two versions of a pack are equal under PEP 440 or but for case.",
		Fix:    "Raise the version in plugin.yaml.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`alice/grad-clip has 1.0 and publishes 1.0.0.`),
	},
	{
		ID: "publish.recipe.taken", Title: "A recipe id is nobody else's and not built in.",
		Fix:    "Rename the recipe and its pack; clients find a recipe by <framework>/<name>, without the owner.",
		Source: "packs.md 5.5, 13.5; wire.md 5.3", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`bob publishes a recipe whose id is verl/grpo, which the clients have built in.`),
	},
	{
		ID: "publish.benchmark.taken", Title: "A benchmark id is nobody else's.",
		Fix:    "Rename the benchmark and its pack; clients find a benchmark by <owner>.<name>, so a/b.c and a.b/c would be one for them.",
		Source: "packs.md 5.5, 6", Gates: publishOnly, Ours: true, Fixed: true, Class: Conflict,
		Example: told(`bob publishes a benchmark named arithmetic, which is alice's.`),
	},
	{
		ID: "publish.name.syncing", Title: "No pack that clients sync is named like the folder of a sync that runs.",
		Fix:    "Choose a name that doesn't end in .syncing; clients unpack <name> into <name>.syncing first.",
		Source: "packs.md 5.5; recipes-and-locks.md 5", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`A recipe pack is named .syncing.`),
	},
	{
		ID: "publish.title", Title: "The layer's title is <name>-<version>.tar.gz.",
		Fix:    "Push again with `sf plugin publish`, or give the layer that title.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The layer of grad-clip 1.0.0 has the title pack.tgz.`),
	},
	{
		ID: "digest.none", Title: "Every file of a pack has a digest.",
		Fix:    "Put a copy of the file in place of a link to outside, and give files names in UTF-8.",
		Source: "packs.md 1.1, 1.3; design.md 9", Gates: packGates, Ours: true, Fixed: true,
		Example: told(`A file of the pack has a name that one of the clients' digests can't be made of.`),
	},
	{
		ID: "digest.content", Title: "The claimed content digest is that of the archive.",
		Fix:    "Compute the digest of what you push: `sf digest ARCHIVE`.",
		Source: "design.md 2", Gates: packGates, Ours: true, Fixed: true,
		Example: told(`The manifest claims a content digest that is not the archive's.`),
	},
	{
		ID: "digest.tree", Title: "The claimed tree digest is that of the archive.",
		Fix:    "Compute the digest of what you push: `sf digest ARCHIVE`.",
		Source: "design.md 2", Gates: packGates, Ours: true, Fixed: true,
		Example: told(`The manifest claims a tree digest that is not the archive's.`),
	},
	{
		ID: "digest.config", Title: "The config blob is the one that the archive gives.",
		Fix:    "Push again with `sf plugin publish`, which derives it.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The config blob names another version than the archive's plugin.yaml.`),
	},
	{
		ID: "publish.tree.revoked", Title: "The files are not those of a revoked version.",
		Fix:    "Mend what the version was revoked for, and publish that. A revocation is final, under whatever name.",
		Source: "docs/operations.md", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`An administrator revoked alice/grad-clip 1.0.0, and bob publishes the same files.`),
	},
	{
		ID: "digest.twin", Title: "No other pack has the same content digest with other files.",
		Fix:    "Compare the two packs by their tree digests; Gatehouse never takes one for the other.",
		Source: "packs.md 1.4, design.md 2", Gates: publishOnly, Ours: true, Severity: Warn,
		Example: told(`Another pack has other files that the clients' content digest can't tell from these.`),
	},
	{
		ID: "oci.limit", Title: "A manifest keeps within its size limit.",
		Fix:    "Move annotations out of the manifest.",
		Source: "admission/limit", Gates: publishOnly, Ours: true, Fixed: true, Class: TooLarge,
		Example: told(`The manifest has 5 MiB.`),
	},
	{
		ID: "oci.json", Title: "A manifest is JSON that every reader sees alike.",
		Fix:    "Name each key once and as the OCI specification spells it, in UTF-8 without a byte-order mark.",
		Source: "corpus m03 to m25", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The manifest names the key layers twice.`),
	},
	{
		ID: "oci.kind", Title: "The artifact type of a pack names a kind that exists.",
		Fix:    "Push with `sf plugin publish`, which sets the artifact type.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The artifact type is application/vnd.gatehouse.pack.method.v1.`),
	},
	{
		ID: "oci.mediatype", Title: "The config and the layer of a pack have Gatehouse's media types.",
		Fix:    "Push with `sf plugin publish`, or from the layout that `sf plugin pack` writes.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The layer is of the type application/vnd.oci.image.layer.v1.tar+gzip.`),
	},
	{
		ID: "oci.layers", Title: "A pack has exactly one layer, its archive.",
		Fix:    "Push with `sf plugin publish`, or from the layout that `sf plugin pack` writes.",
		Source: "design.md 2, corpus m01, m19", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The manifest has two layers.`),
	},
	{
		ID: "oci.title", Title: "The layer of a pack has a title.",
		Fix:    "Set the annotation org.opencontainers.image.title of the layer to <name>-<version>.tar.gz.",
		Source: "design.md 2", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The layer has no annotation org.opencontainers.image.title.`),
	},
	{
		ID: "oci.claims", Title: "A pack's manifest claims both digests.",
		Fix:    "Add the annotations with the digests that `sf digest ARCHIVE` prints.",
		Source: "design.md 9", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`The manifest has no annotation with the tree digest.`),
	},
	{
		ID: "oci.descriptor", Title: "Descriptors hold a digest of a known algorithm and a size.",
		Fix:    "Push again with a client that writes the manifest.",
		Source: "corpus m11, m13", Gates: publishOnly, Ours: true, Fixed: true,
		Example: told(`A descriptor has the size -1.`),
	},
}
