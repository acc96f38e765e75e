# Installs the program of a release of Webstrata for Windows, after it has compared its checksum:
#
#     irm https://github.com/webstrata/webstrata/releases/latest/download/install.ps1 | iex
#
# Needs PowerShell 5 or later, and 64-bit Windows on x86.
param(
    # Version to install, as 0.1.0; the latest without it.
    [string]$Version = "",
    # Directory for the program.
    [string]$To = "$env:LOCALAPPDATA\Programs\webstrata",
    # Address of a directory with the archive and SHA256SUMS; the releases without it.
    [string]$From = ""
)
$ErrorActionPreference = "Stop"
$ProgressPreference = "SilentlyContinue"

$repository = "https://github.com/webstrata/webstrata"
$name = "webstrata-x86_64-pc-windows-msvc"
if (-not $From) {
    $From = if ($Version) { "$repository/releases/download/v$Version" } else { "$repository/releases/latest/download" }
}
$made = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory $made | Out-Null
try {
    Invoke-WebRequest -UseBasicParsing "$From/SHA256SUMS" -OutFile "$made\SHA256SUMS"
    Invoke-WebRequest -UseBasicParsing "$From/$name.zip" -OutFile "$made\$name.zip"
    $line = Select-String -Path "$made\SHA256SUMS" -Pattern "^([0-9a-f]{64}) [ *]$name\.zip$"
    if (-not $line) { throw "$From has no checksum of $name.zip" }
    $expected = $line.Matches[0].Groups[1].Value
    $found = (Get-FileHash -Algorithm SHA256 "$made\$name.zip").Hash.ToLower()
    if ($found -ne $expected) { throw "$name.zip has checksum $found, expected ${expected}: nothing is installed" }
    Expand-Archive "$made\$name.zip" $made
    New-Item -ItemType Directory -Force $To | Out-Null
    Copy-Item -Force "$made\$name\webstrata.exe" $To
    Write-Output "installed: $To\webstrata.exe; add $To to the PATH"
} finally {
    Remove-Item -Recurse -Force $made
}
