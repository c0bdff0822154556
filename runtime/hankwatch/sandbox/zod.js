// Evaluates a Zod text against a recorder: every call of `z` returns a description instead of a parser.
// Called with the body to run as JSON, gives the JSON Schema of what it exported as JSON; see zod.py.
(body) => {
  const MAX_SCHEMA_CHARS = 256 * 1024; // it goes along with every model call
  const { parse, stringify } = JSON;
  const { entries, freeze, hasOwn, keys } = Object;

  const facts = new WeakMap(); // recorded node -> { kind, schema, optional, ... }, out of the text's reach
  const isNode = (value) => facts.has(value);
  const refuse = (what) => { throw new TypeError(what) };
  const unsupported = (what, why = "") => refuse(`${what} is not supported${why}`);

  // Arguments ------------------------------------------------------------------------------------------------

  const need = (fits, what) => (value, where) => fits(value) ? value : refuse(`${where} needs ${what}`);
  const number = need(Number.isFinite, "a number");
  const count = need((value) => Number.isInteger(value) && value >= 0, "a count");
  const string = need((value) => typeof value === "string", "a string");
  const node = need(isNode, "a schema");
  const nodes = need((value) => Array.isArray(value) && value.every(isNode), "a list of schemas");
  const list = need((value) => Array.isArray(value) && value.length > 0, "a list that is not empty");
  const isScalar = (value) => value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
  const scalar = need(isScalar, "a string, number, boolean or null");
  const json = (value, where) => {
    const text = stringify(value);
    return text === undefined ? refuse(`${where} needs a JSON value`) : parse(text);
  };

  // Nodes ----------------------------------------------------------------------------------------------------

  const make = (kind, schema, more = {}) => {
    const recorded = new Proxy(freeze({}), {
      get(_, name) {
        if (typeof name === "symbol") return undefined;
        const where = `z.${kind}().${name}`;
        const owner = [members[kind] ?? {}, members.any].find((own) => hasOwn(own, name));
        return owner ? owner[name](facts.get(recorded), where) : unsupported(where);
      },
      set: (_, name) => unsupported(`setting ${String(name)}`),
    });
    facts.set(recorded, { optional: false, ...more, kind, schema, recorded });
    return recorded;
  };
  const change = (self, schema, more = {}) =>
    make(self.kind, { ...self.schema, ...schema }, { ...self, ...more });
  const described = (made, given) =>
    typeof given?.description === "string" ? change(facts.get(made), { description: given.description }) : made;
  const schemaOf = (value, where) => facts.get(node(value, where)).schema;

  // A second value of one keyword goes into an allOf: both must hold.
  const add = (self, word, value) => {
    if (!(word in self.schema)) return change(self, { [word]: value });
    return change(self, { allOf: [...(self.schema.allOf ?? []), { [word]: value }] });
  };
  const bound = (word, read) => (self, where) => (value) => add(self, word, read(value, where));
  const fixed = (word, value) => (self) => () => add(self, word, value);
  const both = (first, second, read) => (self, where) => (value) =>
    add(facts.get(add(self, first, read(value, where))), second, value);

  // Strings --------------------------------------------------------------------------------------------------

  const quoted = (text) => text.replace(/[\\^$.*+?()[\]{}|\/-]/g, "\\$&");
  const clock = (precision) => `\\d{2}:\\d{2}${precision === undefined ? "(:\\d{2}(\\.\\d+)?)?" :
    precision === -1 ? "" : precision === 0 ? ":\\d{2}" : `:\\d{2}\\.\\d{${count(precision, "precision")}}`}`;
  const datetime = ({ offset = false, local = false, precision } = {}) => {
    const zone = offset ? "(Z|[+-]\\d{2}:?\\d{2})" : "Z";
    return `^\\d{4}-\\d{2}-\\d{2}T${clock(precision)}${local ? `(${zone})?` : zone}$`;
  };
  const patterns = {
    base64: "^([0-9a-zA-Z+/]{4})*(([0-9a-zA-Z+/]{2}==)|([0-9a-zA-Z+/]{3}=))?$",
    cuid: "^[cC][^\\s-]{8,}$",
    cuid2: "^[0-9a-z]+$",
    nanoid: "^[a-zA-Z0-9_-]{21}$",
    ulid: "^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$",
  };
  const formats = { date: "date", email: "email", ipv4: "ipv4", ipv6: "ipv6", uuid: "uuid", guid: "uuid", url: "uri" };
  const spellings = { // each: the options given -> [keyword, value]
    datetime: (given) => ["pattern", datetime(given)],
    time: (given) => ["pattern", `^${clock(given?.precision)}$`],
    ...Object.fromEntries(entries(patterns).map(([name, value]) => [name, () => ["pattern", value]])),
    ...Object.fromEntries(entries(formats).map(([name, value]) => [name, () => ["format", value]])),
  };
  const spelled = Object.fromEntries(entries(spellings).map(([name, spell]) =>
    [name, (self) => (given) => add(self, ...spell(typeof given === "object" ? given : {}))]));
  const patternOf = (regex, where) => {
    if (!(regex instanceof RegExp)) refuse(`${where} needs a regular expression`);
    if (/[^dgu]/.test(regex.flags)) unsupported(`${where} with a flag`, `: a pattern has none, unlike ${regex}`);
    if (/\\[pPu]\{/.test(regex.source)) unsupported(`${where} with \\p{…} or \\u{…}`);
    return regex.source;
  };

  // Objects --------------------------------------------------------------------------------------------------

  const object = (shape, more = {}, unknown = {}) => {
    const where = "z.object()";
    if (shape === null || typeof shape !== "object" || isNode(shape)) refuse(`${where} needs an object of schemas`);
    const fields = entries(shape).map(([name, value]) => [name, facts.get(node(value, `${where} field ${name}`))]);
    const properties = Object.fromEntries(fields.map(([name, field]) => [name, field.schema]));
    const required = fields.filter(([, field]) => !field.optional).map(([name]) => name);
    const schema = { type: "object", properties, ...(required.length && { required }), ...unknown };
    return make("object", { ...more, ...schema }, { shape: { ...shape }, unknown });
  };
  const descriptionOf = ({ schema: { description } }) => description === undefined ? {} : { description };
  const reshape = (self, shape) => object(shape, descriptionOf(self), self.unknown);
  const shut = (unknown) => (self) => () => object(self.shape, descriptionOf(self), unknown);
  const demanded = (field) => facts.get(field).wrapper === "optional" ? facts.get(field).inner : field;
  const chosen = (self, mask, where) => {
    const unknown = keys(mask).filter((name) => !hasOwn(self.shape, name));
    if (unknown.length) refuse(`${where} names ${unknown.join(", ")}, which the object has not`);
    return (name) => mask[name] === true;
  };
  const filtered = (keep) => (self, where) => (mask) => {
    const isChosen = chosen(self, mask, where);
    return reshape(self, Object.fromEntries(entries(self.shape).filter(([name]) => isChosen(name) === keep)));
  };
  const mapped = (revise) => (self, where) => (mask) => {
    const isChosen = mask === undefined ? () => true : chosen(self, mask, where);
    const revised = ([name, field]) => [name, isChosen(name) ? revise(field) : field];
    return reshape(self, Object.fromEntries(entries(self.shape).map(revised)));
  };
  const extended = (self) => (more) =>
    reshape(self, { ...self.shape, ...(isNode(more) ? facts.get(more).shape : more) });

  // What can be called on a node; each takes its facts and its name, and gives what the text sees. -------------

  const optional = (self) => () => change(self, {}, { optional: true, wrapper: "optional", inner: self.recorded });
  const nullable = ({ schema, optional, recorded }) => () =>
    make("nullable", { anyOf: [schema, { type: "null" }] }, { optional, wrapper: "nullable", inner: recorded });
  const members = {
    any: {
      and: (self, where) => (other) => z.intersection(self.recorded, node(other, where)),
      array: (self) => () => z.array(self.recorded),
      brand: (self) => () => self.recorded,
      default: (self, where) => (value) =>
        change(self, { default: json(typeof value === "function" ? value() : value, where) },
          { optional: true, wrapper: "default", inner: self.recorded }),
      describe: (self, where) => (text) => change(self, { description: string(text, where) }),
      description: (self) => self.schema.description,
      meta: (self, where) => (given) => {
        const { title, description, examples } = json(given, where);
        return change(self, json({ title, description, examples }, where));
      },
      nullable,
      nullish: (self) => () => optional(facts.get(nullable(self)()))(),
      optional,
      or: (self, where) => (other) => z.union([self.recorded, node(other, where)]),
      readonly: (self) => () => self.recorded,
      unwrap: (self, where) => () => self.inner ?? unsupported(where),
    },
    string: {
      ...spelled,
      endsWith: (self, where) => (text) => add(self, "pattern", `${quoted(string(text, where))}$`),
      includes: (self, where) => (text) => add(self, "pattern", quoted(string(text, where))),
      length: both("minLength", "maxLength", count),
      max: bound("maxLength", count),
      min: bound("minLength", count),
      nonempty: fixed("minLength", 1),
      regex: (self, where) => (regex) => add(self, "pattern", patternOf(regex, where)),
      startsWith: (self, where) => (text) => add(self, "pattern", `^${quoted(string(text, where))}`),
    },
    number: {
      finite: (self) => () => self.recorded,
      gt: bound("exclusiveMinimum", number),
      gte: bound("minimum", number),
      int: (self) => () => change(self, { type: "integer" }),
      lt: bound("exclusiveMaximum", number),
      lte: bound("maximum", number),
      max: bound("maximum", number),
      min: bound("minimum", number),
      multipleOf: bound("multipleOf", number),
      negative: fixed("exclusiveMaximum", 0),
      nonnegative: fixed("minimum", 0),
      nonpositive: fixed("maximum", 0),
      positive: fixed("exclusiveMinimum", 0),
      safe: (self) => () => self.recorded.gte(Number.MIN_SAFE_INTEGER).lte(Number.MAX_SAFE_INTEGER),
      step: bound("multipleOf", number),
    },
    array: {
      element: (self) => self.element,
      length: both("minItems", "maxItems", count),
      max: bound("maxItems", count),
      min: bound("minItems", count),
      nonempty: fixed("minItems", 1),
    },
    tuple: {
      rest: (self, where) => (item) => change(self, { items: schemaOf(item, where) }),
    },
    object: {
      catchall: (self, where) => (value) => shut({ additionalProperties: schemaOf(value, where) })(self)(),
      extend: extended,
      keyof: (self) => () => z.enum(keys(self.shape)),
      loose: shut({}),
      merge: (self, where) => (other) => {
        const { shape, unknown } = facts.get(node(other, where));
        return object({ ...self.shape, ...shape }, descriptionOf(self), unknown);
      },
      omit: filtered(false),
      partial: mapped((field) => field.optional()),
      passthrough: shut({}),
      pick: filtered(true),
      required: mapped(demanded),
      safeExtend: extended,
      shape: (self) => self.shape,
      strict: shut({ additionalProperties: false }),
      strip: shut({}),
    },
    enum: {
      enum: (self) => self.names,
      exclude: (self) => (names) => z.enum(self.schema.enum.filter((value) => !names.includes(value))),
      extract: (self) => (names) => z.enum(self.schema.enum.filter((value) => names.includes(value))),
      options: (self) => [...self.schema.enum],
      Values: (self) => self.names,
    },
  };

  // What `z` has. --------------------------------------------------------------------------------------------

  const plain = (kind, schema) => (given) => described(make(kind, schema), given);
  const enumeration = (given) => {
    // A TypeScript enum of numbers maps its values back to its names.
    const names = Array.isArray(given) ? Object.fromEntries(given.map((value) => [value, value])) : { ...given };
    const values = Array.isArray(given) ? given
      : keys(given).filter((name) => typeof given[given[name]] !== "number").map((name) => given[name]);
    list(values, "z.enum").forEach((value) => scalar(value, "z.enum"));
    return make("enum", { enum: [...new Set(values)] }, { names });
  };
  const union = (options, where) => make("union", { anyOf: nodes(list(options, where), where).map(schemaOf) });
  const word = (name) => (given) => spelled[name](facts.get(z.string()))(given);
  const words = keys(spellings).filter((name) => !["date", "datetime", "time"].includes(name)); // z.date is a Date
  const constructors = {
    any: plain("any", {}),
    array: (element, given) =>
      described(make("array", { type: "array", items: schemaOf(element, "z.array") }, { element }), given),
    boolean: plain("boolean", { type: "boolean" }),
    discriminatedUnion: (key, options) => {
      const where = "z.discriminatedUnion";
      for (const option of list(options, where)) {
        const { kind, shape } = facts.get(node(option, where));
        const hasKey = shape !== undefined && hasOwn(shape, string(key, where));
        if (kind !== "union" && !hasKey) refuse(`${where}: an option has no ${key}`);
      }
      return union(options, where);
    },
    enum: enumeration,
    int: (given) => z.number(given).int(),
    intersection: (left, right) =>
      make("intersection", { allOf: [schemaOf(left, "z.intersection"), schemaOf(right, "z.intersection")] }),
    iso: freeze({ date: word("date"), datetime: word("datetime"), time: word("time") }),
    literal: (value) => {
      const values = Array.isArray(value) ? list(value, "z.literal") : [value];
      values.forEach((one) => scalar(one, "z.literal"));
      return make("literal", values.length === 1 ? { const: values[0] } : { enum: values });
    },
    looseObject: (shape) => object(shape),
    nativeEnum: enumeration,
    never: plain("never", { not: {} }),
    null: plain("null", { type: "null" }),
    nullable: (inner) => node(inner, "z.nullable").nullable(),
    nullish: (inner) => node(inner, "z.nullish").nullish(),
    number: plain("number", { type: "number" }),
    object: (shape, given) => described(object(shape ?? {}), given),
    optional: (inner) => node(inner, "z.optional").optional(),
    record: (first, second) => {
      const value = schemaOf(second ?? first, "z.record");
      const key = second === undefined ? {} : schemaOf(first, "z.record");
      const plainKey = keys(key).every((keyword) => keyword === "type" || keyword === "description");
      const propertyNames = plainKey ? {} : { propertyNames: key };
      return make("record", { type: "object", ...propertyNames, additionalProperties: value });
    },
    strictObject: (shape) => object(shape, {}, { additionalProperties: false }),
    string: plain("string", { type: "string" }),
    tuple: (items, rest) => {
      const recorded = nodes(items, "z.tuple").map((item) => facts.get(item));
      const needed = recorded.findLastIndex((item) => !item.optional) + 1;
      const prefixItems = recorded.map((item) => item.schema);
      const schema = { type: "array", ...(prefixItems.length && { prefixItems }), minItems: needed };
      return make("tuple", { ...schema, items: rest == null ? false : schemaOf(rest, "z.tuple") });
    },
    union: (options) => union(options, "z.union"),
    unknown: plain("unknown", {}),
    ...Object.fromEntries(words.map((name) => [name, word(name)])),
  };
  const why = {
    date: ": JSON has no dates; use z.string().datetime()",
    lazy: ": a schema of an answer cannot refer to itself",
  };
  const z = new Proxy(freeze(constructors), {
    get: (known, name) => hasOwn(known, name) ? known[name] : unsupported(`z.${String(name)}`, why[name]),
  });

  // The text's world: `z`, its exports, and a few values that hold no way out. ---------------------------------

  const exports = {};
  const names = { __proto__: null, z, zod: z, exports, undefined, NaN, Infinity, Number, RegExp, Math };
  const world = new Proxy(names, {
    has: () => true,
    get: (known, name) =>
      typeof name === "symbol" || name in known ? known[name] : refuse(`${name} is not available in a schema`),
  });
  const run = new Function("world", `with (world) { (() => {"use strict";${parse(body)}\n})() }`);
  for (const way of [() => 0, async () => 0, function* () {}, async function* () {}]) {
    delete Object.getPrototypeOf(way).constructor; // each leads to what makes code of text, beside the world
  }
  run.call(freeze({ __proto__: null }), world);
  const found = entries(exports).filter(([, value]) => isNode(value));
  const exported = exports.default ?? exports.schema ?? (found.length === 1 ? found[0][1] : undefined);
  if (!isNode(exported)) {
    refuse(found.length > 1 ? "exports several schemas: write `export default` before one" : "gives no Zod schema");
  }
  const schema = stringify(facts.get(exported).schema);
  return schema.length <= MAX_SCHEMA_CHARS ? schema : refuse("the JSON Schema is longer than 256 KB");
}
