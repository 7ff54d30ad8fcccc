"""What php-fpm's workers do: the request, its script and the function, which the script itself knows."""
import os
import socket
import struct

from harness import SLOW, case, check, rows_of, unescape, wait_until
from parts import PhpFpm

TEXT = r"""
namespace Shop;
class Cart {
    function total($seconds) { return array_map(function ($one) { return wait($one); }, [$seconds]); }
    static function pay($seconds) { usleep($seconds * 1000000); }
}
function wait($seconds) { file_put_contents($_SERVER['DONE'], getmypid()); sleep($seconds); return 1; }
if ($_SERVER['WHAT'] == 'cart') (new Cart)->total(600);
file_put_contents($_SERVER['DONE'], getmypid());
if ($_SERVER['WHAT'] == 'pay') Cart::pay(600);
if ($_SERVER['WHAT'] == 'main') sleep(600);
"""


def request(server, what, done, method="GET"):
    """Sends a request by FastCGI; returns its connection."""
    def record(kind, body):
        return struct.pack("!BBHHBB", 1, kind, 1, len(body), 0, 0) + body

    words = {"SCRIPT_FILENAME": server.script, "REQUEST_METHOD": method, "SCRIPT_NAME": "/shop/" + what, "REQUEST_URI": "/shop/%s?secret=1" % what,
             "QUERY_STRING": "secret=1", "WHAT": what, "DONE": done}
    pairs = b"".join(bytes([len(name), len(value)]) + name.encode() + value.encode() for name, value in words.items())
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.sendall(record(1, struct.pack("!HB5x", 1, 0)) + record(4, pairs) + record(4, b"") + record(5, b""))
    return connection


@case
def requests_of_php(ctx):
    """A worker of php-fpm that answers a request has its method, its path without the query string, its script, and the innermost function
    of the script, in a class, in a closure's caller, and outside of any; a worker that has answered one has none of these."""
    server = PhpFpm(ctx, TEXT)
    done = server.script[:-len("index.php")] + "done"
    with open(done, "w"):
        pass
    os.chmod(done, 0o666)
    finished = request(server, "none", done)
    finished.settimeout(20 * SLOW)
    while finished.recv(4096):
        pass

    def begun(what, method="GET"):
        with open(done, "w"):
            pass
        connection = request(server, what, done, method)
        wait_until(lambda: open(done).read().isdigit(), 20 * SLOW, "the script")
        return int(open(done).read()), connection

    for what, method, function in (("cart", "GET", r"Shop\wait"), ("pay", "POST", r"Shop\Cart::pay"), ("main", "GET", "{main}")):
        pid, connection = begun(what, method)
        rows = ctx.rows("-a", "-c", os.path.basename(os.readlink("/proc/%d/exe" % pid))[:15], seconds=1,
                        columns="pid,request,app_script,app_function")
        mine = rows_of(rows, pid)
        check(len(mine) > 10, "%d samples of %d", len(mine), pid)
        for row in mine[5:]:  # the first ones may be before the program was looked at
            told = [unescape(row[column]).decode() for column in ("request", "app_script", "app_function")]
            check(told == ["%s /shop/%s" % (method, what), server.script, function], "%s: %s", what, told)
        others = [row for row in rows if row["pid"] != str(pid) and (row["request"] or row["app_script"] or row["app_function"])]
        check(not others, "of others: %s", others[:2])
        connection.close()
        os.kill(pid, 9)
