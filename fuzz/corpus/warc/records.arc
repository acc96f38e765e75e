filedesc://a.arc 0.0.0.0 20080601120000 text/plain 69
1 0 none
URL IP-address Archive-date Content-type Archive-length

http://example.org/ 192.0.2.1 20080601120000 text/html 150
HTTP/1.1 200 OK
Content-Type: text/html; charset=utf-8

<base href="/news/"><a href="../about">a</a><a href=//example.com/b>b</a><area href="?q=1">
