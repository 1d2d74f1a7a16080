# Sourced by the other scripts here: installing Debian or Ubuntu packages where this user may.

# install_packages NAME...: fails, without a word, where there is no apt, no right to use it, or no such package.
install_packages() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo --non-interactive)
        "${as_root[@]}" true 2>/dev/null || return 1
    fi
    command -v apt-get >/dev/null || return 1
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 --yes --no-install-recommends
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update >/dev/null || return 1
    "${apt[@]}" --simulate install "$@" >/dev/null 2>&1 || return 1
    echo "installing $* with apt" >&2
    # Java's packages fail to configure on images that were stripped of their manual pages.
    "${as_root[@]}" mkdir -p /usr/share/man/man1
    "${apt[@]}" install "$@" >/dev/null </dev/null
}
