WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://example.org/
WARC-Date: 2008-06-01T12:00:00Z
Content-Type: application/json
Content-Length: 412

{"Envelope": {"WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Target-URI": "http://example.org/", "WARC-Date": "2008-06-01T12:00:00Z"}, "Payload-Metadata": {"HTTP-Response-Metadata": {"Response-Message": {"Status": "200"}, "Headers": {"Content-Type": "text/html"}, "HTML-Metadata": {"Head": {"Base": "/x/"}, "Links": [{"path": "A@/href", "url": "../about"}, {"path": "IMG@/src", "url": "/logo.png"}]}}}}}

