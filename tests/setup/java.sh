#!/usr/bin/env bash
# Prints the home of a Java that Spark can use (17 or later): JAVA_HOME, the one on PATH, or one in the usual
# folders; where there is none, one is installed with apt if this user may.
set -euo pipefail
source "$(dirname "$0")/apt.sh"

# home_if_usable PROGRAM: asks Java itself, since what stands on PATH is often a link or a shim.
home_if_usable() {
    local told version home
    [ -x "$1" ] || return 1
    told=$("$1" -XshowSettings:properties -version 2>&1 </dev/null) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$told")
    home=$(sed -n 's/^ *java\.home = //p' <<<"$told")
    [ "${version%%.*}" -ge 17 ] 2>/dev/null && echo "$home"
}

find_home() {
    local program
    for program in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java /opt/java/*/bin/java /opt/jdk*/bin/java \
        "$HOME"/.sdkman/candidates/java/current/bin/java "$HOME"/.jdks/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java /opt/homebrew/opt/openjdk*/bin/java; do
        home_if_usable "$program" && return
    done
    return 1
}

find_home && exit
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    install_packages "$package" && find_home && exit
done
echo "Spark needs Java 17 or later and none was found: install one (on Debian and Ubuntu:" \
    "sudo apt-get install default-jre-headless), or set JAVA_HOME to it." >&2
exit 1
