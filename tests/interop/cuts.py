"""Cuts between servers of a cluster on one machine: a relay before each server, which the other servers call.

A relay knows which process opened a connection by its port (/proc, Linux), so that a pair of servers can be cut. A cut
holds bytes back, as a network does that loses packets: nobody is told, and what was sent arrives when the cut heals.
"""
import asyncio
import json
import os
import subprocess
import sys

PIECE = 1 << 16
PAUSE = 0.02


def sockets_of(pid):
    """The inodes of the sockets of a process."""
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                link = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if link.startswith("socket:["):
                found.add(link[8:-1])
    except OSError:
        pass
    return found


def inode_of(port):
    """The inode of the socket of this machine with a local port."""
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if int(fields[1].rsplit(":", 1)[1], 16) == port and fields[9] != "0":
                return fields[9]
    return None


class Cuts:
    """The relays of a cluster, in a process of their own. Servers have numbers."""

    def __init__(self, count):
        self.process = subprocess.Popen([sys.executable, __file__, str(count)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.ports = json.loads(self.process.stdout.readline())
        self.said = {"pids": [None] * count, "targets": [None] * count, "apart": []}

    def say(self):
        self.process.stdin.write(json.dumps(self.said) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def server(self, number, pid, port):
        """The process of a server, and where it listens."""
        self.said["pids"][number], self.said["targets"][number] = pid, port
        self.say()

    def cut(self, number, others):
        """Cuts a server off from others, in both directions."""
        self.said["apart"] = [[number, other] for other in others]
        self.say()

    def heal(self):
        self.said["apart"] = []
        self.say()

    def end(self):
        self.process.kill()
        self.process.wait()


class Relays:
    def __init__(self, count):
        self.count, self.ports = count, [None] * count
        self.pids, self.targets, self.apart = [None] * count, [None] * count, set()

    async def run(self):
        for number in range(self.count):
            await self.listen(number)
        print(json.dumps(self.ports), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            told = json.loads(line)
            self.pids, self.targets = told["pids"], told["targets"]
            self.apart = {frozenset(pair) for pair in told["apart"]}
            print("done", flush=True)

    async def listen(self, number):
        async def accept(reader, writer):
            await self.relay(number, reader, writer)
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.ports[number] = server.sockets[0].getsockname()[1]

    def owner(self, port):
        inode = inode_of(port)
        return next((number for number, pid in enumerate(self.pids) if pid and inode in sockets_of(pid)), None)

    async def relay(self, number, reader, writer):
        pair = frozenset((self.owner(writer.get_extra_info("peername")[1]), number))
        try:
            while pair in self.apart:
                await asyncio.sleep(PAUSE)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.targets[number])
        except OSError:
            writer.close()
            return
        ways = [asyncio.ensure_future(self.pass_on(pair, *way)) for way in ((reader, far_writer), (far_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, far_writer):
            end.close()

    async def pass_on(self, pair, reader, writer):
        try:
            while piece := await reader.read(PIECE):
                while pair in self.apart:
                    await asyncio.sleep(PAUSE)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass


if __name__ == "__main__":
    asyncio.run(Relays(int(sys.argv[1])).run())
