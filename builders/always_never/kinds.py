"""The kinds of words that Always-Never statements are made of, and words that read oddly.

What is left out fits its kind in principle: read aloud in a statement, it was found too general,
of several meanings, or unpleasant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kb_cache.conceptnet.filter import ADJECTIVE, VERB


@dataclass(frozen=True)
class Kind:
    """Words of one kind.

    Attributes:
        isa: what ConceptNet's IsA leads to.
        synsets: what is above the word's sense in WordNet; empty for words that are no nouns.
        ends: relation and kind: what ConceptNet gives to words of that kind fits, too.
        any_sense: whether any sense of the word will do, or the first alone.
        not_below: synsets whose words do not fit after all.
        words: how many words a term may have.
        counted: whether only what is counted fits.
        pos: the part of speech of words that are no nouns.
        left_out: words that fit in principle, and read oddly.
    """

    isa: tuple[str, ...] = ()
    synsets: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    any_sense: bool = False
    not_below: tuple[str, ...] = ()
    words: int = 1
    counted: bool = False
    pos: int = 0
    left_out: frozenset[str] = frozenset()


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


KINDS: Mapping[str, Kind] = {
    "animal": Kind(
        ("animal", "mammal", "bird", "fish", "insect", "reptile", "pet", "rodent", "wild animal"),
        ("animal.n.01",),
        counted=True,
        left_out=_words(
            """animal ape aye-aye beast beef bird_dog bitter black_bear brown_bear bug
            bull_terrier calf canine cattle chick chow chow-chow creature critter
            dog_bird equine farm_animal feline female fly fowl fox_terrier gnu
            hound human impala insect male mammal mare mustang pet predator prey
            primate puma pup queen raptor reptile rodent royal serpent sow swine
            terrier vertebrate wild_animal"""
        ),
    ),
    "body part": Kind(
        ("body part", "organ", "limb"),
        ("body_part.n.01", "body_covering.n.01", "animal_material.n.01"),
        ends=("HasA", "animal"),
        any_sense=True,
        left_out=_words(
            """abdomen back ball behind bill bite body bosom bottom breast but butt calf canine
            canines cartilage cell chop comb egg face figure fleece forearm frame
            gland hammer hide leather limb litter member middle muscle muzzle nail
            nut organ palm pancreas person pet pore pouch rear saddle shape side
            spot square stick structure system tissue toy trotter trunk vein
            vessel voice waist wave womb"""
        ),
    ),
    "food": Kind(
        (
            "food",
            "fruit",
            "vegetable",
            "meat",
            "spice",
            "dairy product",
            "bread",
            "sauce",
            "nut",
            "seafood",
            "bean",
            "grain",
            "fish",
        ),
        ("food.n.01", "food.n.02", "edible_fruit.n.01", "vegetable.n.01", "seafood.n.01"),
        left_out=_words(
            """alcohol alcoholic_beverage alcoholic_drink ale apple_pie bagel bar barbecue beer
            beverage bite bitter black_bread booze brandy bread_knife breakfast
            brunch cappuccino caster_sugar champagne cheesecake chili chilli
            chilly cider cocktail coffee cookie corn_flake course cow_milk cracker
            cream_cheese cupcake custard dessert diet dinner dish dog_food drink
            edible_fruit fast_food food frozen_food fruit fruit_punch gin
            ginger_snap hamburger hay jelly_bean kiwi_fruit latte lemon_cheese
            liquor lunch marble_cake meal meat oreo pie pita pizza poison produce
            pumpkin_pie ration red_wine root_beer rum salad sandwich seafood
            side_dish snack soft_drink soup sour sour_milk stew stout supper sushi
            tea treat vegetable vitamin vodka whiskey white_wine wine"""
        ),
        words=2,
    ),
    "eaten": Kind(
        ("food", "fruit", "vegetable", "meat", "plant", "grass", "seed", "nut"),
        (
            "food.n.02",
            "edible_fruit.n.01",
            "vegetable.n.01",
            "grass.n.01",
            "leaf.n.01",
            "seed.n.01",
            "meat.n.01",
            "herb.n.01",
            "grain.n.02",
            "nut.n.01",
            "feed.n.01",
        ),
        left_out=_words(
            """apple_pie bagel bean black_bread bread cracker cupcake dog_food drink edible_fruit
            forget-me-not ginger_snap iris kiwi_fruit lamb lily marble_cake mint
            peppermint petal pie pita poison poppy produce pumpkin_pie ration
            red_wine reed rose seafood toast tobacco violet wine"""
        ),
        words=2,
    ),
    "thing": Kind(
        (
            "tool",
            "furniture",
            "container",
            "musical instrument",
            "toy",
            "weapon",
            "appliance",
            "clothe",
            "garment",
            "utensil",
        ),
        (
            "container.n.01",
            "furniture.n.01",
            "musical_instrument.n.01",
            "tool.n.01",
            "weapon.n.01",
            "home_appliance.n.01",
            "clothing.n.01",
            "footwear.n.01",
            "plaything.n.01",
            "kitchen_utensil.n.01",
            "tableware.n.01",
            "writing_implement.n.01",
        ),
        counted=True,
        left_out=_words(
            """ambulance arm automatic automobile base basin bath bayonet bench bicycle bike bin
            bomb booth bow bra bullet cabinet_minister can car carriage cart case
            casket clothing coat_hanger coffin compact cone console convertible
            costume coupe cover cross cruiser device dish drawer electric
            electric_chair envelope footwear furniture garment heat hide hoe hole
            instrument iron jean jeep laundry linen mac mine missile motorcycle
            overall overalls panty parcel party pew pocket pool pouch projectile
            quill receptacle rein royal scooter screen sedan set shot tank taxi
            thong tie tool toy transporter tray trouser truck tub underwear
            uniform unit urn utensil vessel weapon wear window"""
        ),
    ),
    "vehicle": Kind(
        ("vehicle", "transportation", "boat", "ship", "aircraft"),
        ("vehicle.n.01",),
        counted=True,
        left_out=_words(
            """automobile bomber caddy carriage cart convertible coupe craft cruiser destroyer
            glider jet lorry magic missile plane rocket sedan sport tanker
            transporter trolley vehicle vessel"""
        ),
    ),
    "small thing": Kind(
        (
            "tool",
            "container",
            "toy",
            "clothe",
            "garment",
            "utensil",
            "fruit",
            "vegetable",
            "food",
            "musical instrument",
        ),
        (
            "container.n.01",
            "tool.n.01",
            "clothing.n.01",
            "footwear.n.01",
            "plaything.n.01",
            "kitchen_utensil.n.01",
            "tableware.n.01",
            "writing_implement.n.01",
            "edible_fruit.n.01",
            "vegetable.n.01",
            "publication.n.01",
            "musical_instrument.n.01",
        ),
        counted=True,
        left_out=_words(
            """basin bath bin booth bra can case casket clothing coffin compact cone convertible
            cover cross dish drawer dresser edible_fruit electric fig footwear
            garment gown hoe instrument issue jean laundry legume mac musical
            musical_instrument overall overalls panty parcel pea piano pianos
            pocket pool pouch produce quill series spinach tank thong tie tool
            transporter tray trouser tub turtle underwear uniform urn vegetable
            vessel volume wardrobe"""
        ),
        not_below=("vehicle.n.01", "furniture.n.01"),
    ),
    "place": Kind(
        ("container", "room", "building", "furniture"),
        ("container.n.01", "room.n.01", "building.n.01", "furniture.n.01", "home_appliance.n.01"),
        ends=("AtLocation", "small thing"),
        counted=True,
        left_out=_words(
            """armchair ballot_box ballroom bar bath beer_mug bench bin book_bag bookcase bottle
            bowl brothel building cafe can capitol casket castle cell chair club
            cockpit coffee_cup coffee_table coffin container couch counter cup
            desk dish dormitory dungeon establishment farm fireplace flask floor
            foyer fraternity_house front_room furniture glass grave hand_luggage
            hospital iron jug kit lamp morgue nursery office_building palace
            parcel park_bench parlor pew place plate pool porch pot prison
            prison_cell pub room salad_bar saloon seat shelf skyscraper sofa
            stable stall stool structure synagogue table tank tavern theatre
            toilet tool_chest toy_chest tray tub urn vase vessel vial
            wardrobe_room wheelchair"""
        ),
        not_below=("vehicle.n.01",),
        words=2,
    ),
    "deed": Kind(
        ends=("CapableOf", "animal"),
        pos=VERB,
        left_out=_words(
            """annoy breath breathe breed come crow defend die do feel forget get go grow hurt
            live lose make marry mate pant sense shed stray stroke suck take throw
            train use vote"""
        ),
    ),
    "quality": Kind(
        ends=("HasProperty", "food"),
        pos=ADJECTIVE,
        left_out=_words(
            """available bad blind different edible good healthy nutritious organic same smelly
            stupid sure tasty yummy"""
        ),
    ),
}
"""Every kind, by name."""
