// What the build wrote: the terms of every bundled model, the formats, and what Python weighs.
export const SITE = new URL("../../../", import.meta.url);
export const known = await (await fetch(new URL("assets/live/models.json", SITE))).json();
