// Validates docs/asyncapi.json as the AsyncAPI tools do.
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(readFileSync(new URL("../../docs/asyncapi.json", import.meta.url), "utf8"));
const faults = diagnostics.filter((d) => d.severity < 2); // errors and warnings
for (const d of faults) console.error(`${d.path.join(".")}: ${d.message}`);
console.log(`asyncapi.json: ${document?.channels().length ?? 0} channels, ${faults.length} faults`);
process.exitCode = document && faults.length === 0 ? 0 : 1;
