#!/usr/bin/perl
#
# packaging/meta.pl FILE name|check
#	  META.json by PGXN's Meta Spec 1.0.0: the distribution's name and version, or all that
#	  the specification wants.  Each fault is a line; there must be none.
#
use strict;
use warnings;
use JSON::PP;
use File::Basename;

my ($file, $what) = @ARGV;
die "usage: meta.pl FILE name|check\n" unless defined $what;
open my $in, '<', $file or die "$file: $!\n";
my $meta = decode_json(do { local $/ = undef; <$in> });
my @faults;

# A term, and what it says of the value.
my $string = qr/\S/;
my $term = qr/^[^\s\/\\\x00-\x1f]{2,}$/;
my $version = qr/^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([a-zA-Z][\w-]*)?$/;
# What a range of versions is: "0", "1.2.3", ">= 1.2.3, < 2.0.0".
my $one = qr/(?:[<>=!]=?\s*)?(?:0|\d+\.\d+\.\d+(?:[a-zA-Z][\w-]*)?)/;
my $range = qr/^$one(?:\s*,\s*$one)*$/;
my $licenses = join '|', qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3
	gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql
	qpl_1_0 ssleay sun zlib open_source restricted unrestricted unknown);

sub want
{
	my ($where, $value, $pattern) = @_;

	push @faults, "$where is missing" and return unless defined $value;
	push @faults, "$where: not \"$value\"" if ref $value || $value !~ $pattern;
}

sub names
{
	my ($where, $value) = @_;

	push @faults, "$where is no object" and return () unless ref $value eq 'HASH';
	push @faults, "$where is empty" unless %$value;
	return sort keys %$value;
}

want('name', $meta->{name}, $term);
want('version', $meta->{version}, $version);
if ($what eq 'name')
{
	die map { "$file: $_\n" } @faults if @faults;
	print "$meta->{name}-$meta->{version}\n";
	exit 0;
}
want('abstract', $meta->{abstract}, $string);
want('description', $meta->{description} // 'none', $string);
my @maintainers = ref $meta->{maintainer} eq 'ARRAY' ? @{$meta->{maintainer}} : ($meta->{maintainer});
push @faults, 'maintainer is empty' unless @maintainers;
want('maintainer', $_, $string) foreach @maintainers;
if (ref $meta->{license} eq 'HASH') { want("license.$_", $meta->{license}{$_}, qr/^\w+:/) foreach names('license', $meta->{license}) }
else { want('license', $_, qr/^(?:$licenses)$/) foreach ref $meta->{license} eq 'ARRAY' ? @{$meta->{license}} : ($meta->{license}) }
foreach my $ext (names('provides', $meta->{provides}))
{
	my $p = $meta->{provides}{$ext};

	want('provides', $ext, $term);
	want("provides.$ext.version", $p->{version}, $version);
	want("provides.$ext.file", $p->{file}, $string);
	want("provides.$ext.$_", $p->{$_} // 'none', $string) foreach qw(abstract docfile);
	push @faults, "provides.$ext.docfile: there is no $p->{docfile}"
		if defined $p->{docfile} && !-f dirname($file) . "/$p->{docfile}";
}
my $m = $meta->{'meta-spec'};
want('meta-spec.version', ref $m ? $m->{version} : undef, qr/^1\.0\.\d+$/);
want('meta-spec.url', ref $m ? $m->{url} // 'https://pgxn.org' : undef, qr/^https?:/);
want('release_status', $meta->{release_status} // 'stable', qr/^(?:stable|testing|unstable)$/);
if (defined $meta->{prereqs})
{
	foreach my $phase (names('prereqs', $meta->{prereqs}))
	{
		want('a phase of prereqs', $phase, qr/^(?:(?:configure|build|test|runtime|develop)$|x_)/i);
		foreach my $kind (names("prereqs.$phase", $meta->{prereqs}{$phase}))
		{
			want("a kind of prereqs.$phase", $kind, qr/^(?:(?:requires|recommends|suggests|conflicts)$|x_)/i);
			want("prereqs.$phase.$kind.$_", $meta->{prereqs}{$phase}{$kind}{$_}, $range)
				foreach names("prereqs.$phase.$kind", $meta->{prereqs}{$phase}{$kind});
		}
	}
}
if (defined $meta->{tags})
{
	push @faults, 'tags is no array, or empty' unless ref $meta->{tags} eq 'ARRAY' && @{$meta->{tags}};
	want('a tag', $_, qr/^[^\/\\\x00-\x1f]{1,255}$/) foreach ref $meta->{tags} eq 'ARRAY' ? @{$meta->{tags}} : ();
}
foreach my $key (sort keys %$meta)
{
	push @faults, "$key is no key of the specification" unless $key =~ /^(?:[xX]_\w+|abstract|maintainer|license
		|provides|name|version|meta-spec|description|generated_by|no_index|prereqs|release_status|resources|tags)$/x;
}
print STDERR "$file: $_\n" foreach @faults;
exit(@faults ? 1 : 0);
