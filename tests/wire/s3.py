"""An S3 server in memory on a free port, which it tells on the first line."""

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
